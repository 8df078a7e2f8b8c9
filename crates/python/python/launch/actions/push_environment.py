"""Action: remember the environment."""

from __future__ import annotations

from launch.action import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class PushEnvironment(Action):
    """Remembers the environment, for PopEnvironment."""

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        context._push_environment()
