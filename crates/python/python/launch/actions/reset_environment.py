"""Action: go back to the environment that the launch began with."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_action('reset_env')
class ResetEnvironment(Action):
    """Goes back to the environment that the launch began with."""

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._reset_environment()
