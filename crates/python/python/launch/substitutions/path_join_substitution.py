"""Substitution: a path from parts."""

from __future__ import annotations

import os

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.utilities import describe_substitutions, normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


def _component(part: SomeSubstitutionsType) -> List[Substitution]:
    return normalize_to_list_of_substitutions(part)


@expose_substitution('path-join')
class PathJoinSubstitution(Substitution):
    """
    A path from parts, joined by '/'.

    A part is text, a substitution, or a list of both that is joined without '/' (as later
    releases take it). ``path / 'part'`` adds a part.
    """

    def __init__(self, substitutions: Iterable[SomeSubstitutionsType]) -> None:
        super().__init__()
        self.__components = [_component(part) for part in substitutions]

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[PathJoinSubstitution], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) < 1:
            raise TypeError('path-join substitution expects 1 argument or more')
        return cls, {'substitutions': data}

    @property
    def substitutions(self) -> List[Substitution]:
        """The substitutions of all parts."""
        return [each for component in self.__components for each in component]

    def describe(self) -> str:
        """Return a text for people."""
        text = ' + '.join(describe_substitutions(each) for each in self.__components)
        return f"PathJoin('{text}')"

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        parts = [
            ''.join([each.perform(context) for each in component])
            for component in self.__components]
        return os.path.join(*parts) if parts else ''

    def __truediv__(self, part: SomeSubstitutionsType) -> PathJoinSubstitution:
        return PathJoinSubstitution([*self.__components, part])


class PathSubstitution(PathJoinSubstitution):
    """A path to which ``/`` adds parts."""

    def __init__(self, path: SomeSubstitutionsType) -> None:
        super().__init__([path])
