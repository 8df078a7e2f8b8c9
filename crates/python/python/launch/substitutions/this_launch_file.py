"""Substitution: the path of the launch file."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions.substitution_failure import SubstitutionFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('filename')
class ThisLaunchFile(Substitution):
    """The path of the launch file."""

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[ThisLaunchFile], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) != 0:
            raise TypeError("filename substitution doesn't expect arguments")
        return cls, {}

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
