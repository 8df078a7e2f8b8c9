"""Action: end the launch."""

from __future__ import annotations

import launch.logging
from launch.actions.emit_event import EmitEvent
from launch.events.process import ProcessExited
from launch.events.shutdown import Shutdown as ShutdownEvent
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_action('shutdown')
class Shutdown(EmitEvent):
    """Ends the launch."""

    def __init__(
        self, *, reason: SomeSubstitutionsType = 'reason not given', **kwargs: Any,
    ) -> None:
        super().__init__(event=ShutdownEvent(reason=reason), **kwargs)

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[Shutdown], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        reason = entity.get_attr('reason', optional=True)
        if reason:
            kwargs['reason'] = parser.parse_substitution(reason)
        return cls, kwargs

    def execute(self, context: LaunchContext) -> None:
        """Queue the event."""
        if context.plan is not None:
            reason = perform_substitutions(
                context, normalize_to_list_of_substitutions(self.event.reason))
            context.plan.add('shutdown', f'shut down: {reason}', reason=reason)
            return
        event = context.get_locals_as_dict().get('event')
        if isinstance(event, ProcessExited):
            launch.logging.get_logger('launch').info(
                f'process[{event.process_name}] was required: shutting down launched system')
        super().execute(context)
