"""Action: remember the launch configurations."""

from __future__ import annotations

from launch.action import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class PushLaunchConfigurations(Action):
    """Remembers the launch configurations, for PopLaunchConfigurations."""

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._push_launch_configurations()
