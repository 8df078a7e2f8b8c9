"""Action: go back to the launch configurations that were pushed last."""

from __future__ import annotations

from launch.action import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class PopLaunchConfigurations(Action):
    """Goes back to the launch configurations that were pushed last."""

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._pop_launch_configurations()
