"""Action: remove a launch configuration."""

from __future__ import annotations

from launch.actions._named_action import NamedAction
from launch.utilities import perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class UnsetLaunchConfiguration(NamedAction):
    """Removes a launch configuration, if it is there."""

    def execute(self, context: LaunchContext) -> None:
        """Remove it."""
        context.launch_configurations.pop(perform_substitutions(context, self._name), None)
