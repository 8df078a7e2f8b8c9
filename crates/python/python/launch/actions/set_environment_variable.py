"""Action: set an environment variable."""

from __future__ import annotations

from launch.actions._named_action import NamedValueAction
from launch.frontend.expose import expose_action
from launch.utilities import perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_action('set_env')
class SetEnvironmentVariable(NamedValueAction):
    """Sets an environment variable."""

    def execute(self, context: LaunchContext) -> None:
        """Set it."""
        name = perform_substitutions(context, self._name)
        context.environment[name] = perform_substitutions(context, self._value)
