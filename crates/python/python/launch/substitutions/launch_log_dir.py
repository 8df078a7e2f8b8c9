"""Substitution: the log folder."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.logging import launch_config
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_substitution('launch_log_dir')
@expose_substitution('log_dir')
class LaunchLogDir(Substitution):
    """The log folder of this launch."""

    parse = parse_arguments('launch_log_dir/log_dir')

    def describe(self) -> str:
        """Return a text for people."""
        return 'LaunchLogDir()'

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        return launch_config.log_dir
