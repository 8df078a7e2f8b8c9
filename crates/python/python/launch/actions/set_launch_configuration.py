"""Action: set a launch configuration."""

from __future__ import annotations

from launch.actions._named_action import NamedValueAction
from launch.frontend.expose import expose_action
from launch.utilities import perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_action('let')
class SetLaunchConfiguration(NamedValueAction):
    """Sets a launch configuration."""

    def execute(self, context: LaunchContext) -> None:
        """Set it."""
        name = perform_substitutions(context, self._name)
        context.launch_configurations[name] = perform_substitutions(context, self._value)
