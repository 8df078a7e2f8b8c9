"""Action: go back to the environment that was pushed last."""

from __future__ import annotations

from launch.action import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class PopEnvironment(Action):
    """Goes back to the environment that was pushed last."""

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._pop_environment()
