"""Substitution: the path of the launch file."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_substitution('filename')
class ThisLaunchFile(Substitution):
    """The path of the launch file."""

    parse = parse_arguments('filename')

    def describe(self) -> str:
        """Return a text for people."""
        return 'ThisLaunchFile()'

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        path = context.get_locals_as_dict().get('current_launch_file_path')
        if path is None:
            raise SubstitutionFailure(
                'ThisLaunchFile used outside of a launch file (in a script)')
        return path
