"""Action: remove an environment variable."""

from __future__ import annotations

from launch.actions._named_action import NamedAction
from launch.frontend.expose import expose_action
from launch.utilities import perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_action('unset_env')
class UnsetEnvironmentVariable(NamedAction):
    """Removes an environment variable, if it is there."""

    def execute(self, context: LaunchContext) -> None:
        """Remove it."""
        context.environment.pop(perform_substitutions(context, self._name), None)
