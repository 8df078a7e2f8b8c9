"""Action: log a message."""

from __future__ import annotations

import launch.logging
from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_action('log')
class LogInfo(Action):
    """Logs a message."""

    def __init__(self, *, msg: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__msg = normalize_to_list_of_substitutions(msg)
        self.__logger = launch.logging.get_logger('launch.user')

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[LogInfo], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['msg'] = parser.parse_substitution(entity.get_attr('message'))
        return cls, kwargs

    @property
    def msg(self) -> List[Substitution]:
        """The message."""
        return self.__msg

    def execute(self, context: LaunchContext) -> None:
        """Log the message."""
        text = perform_substitutions(context, self.__msg)
        if context.plan is not None:
            context.plan.add('log', f'log: {text}', level='INFO', message=text)
            return
        self.__logger.info(text)
