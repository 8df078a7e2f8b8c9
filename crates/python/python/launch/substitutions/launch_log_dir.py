"""Substitution: the log folder."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.logging import launch_config
from launch.substitution import Substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('launch_log_dir')
@expose_substitution('log_dir')
class LaunchLogDir(Substitution):
    """The log folder of this launch."""

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[LaunchLogDir], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) != 0:
            raise TypeError("launch_log_dir/log_dir substitution doesn't expect arguments")
        return cls, {}

    def describe(self) -> str:
        """Return a text for people."""
        return 'LaunchLogDir()'

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        return launch_config.log_dir
