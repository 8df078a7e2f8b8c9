"""Action: go back to the environment that the launch began with."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext


@expose_action('reset_env')
class ResetEnvironment(Action):
    """Goes back to the environment that the launch began with."""

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[ResetEnvironment], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        return cls, kwargs

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._reset_environment()
