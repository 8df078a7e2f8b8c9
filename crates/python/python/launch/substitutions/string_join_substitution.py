"""Substitution: texts with a delimiter between them."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('string-join')
class StringJoinSubstitution(Substitution):
    """Texts with a delimiter between them, as later releases have it."""

    def __init__(
        self,
        substitutions: Iterable[SomeSubstitutionsType],
        delimiter: SomeSubstitutionsType = '',
    ) -> None:
        super().__init__()
        self.__parts = [normalize_to_list_of_substitutions(part) for part in substitutions]
        self.__delimiter = normalize_to_list_of_substitutions(delimiter)

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[StringJoinSubstitution], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) < 1:
            raise TypeError('string-join substitution expects 1 argument or more')
        return cls, {'delimiter': data[0], 'substitutions': data[1:]}

    @property
    def substitutions(self) -> List[List[Substitution]]:
        """The texts."""
        return self.__parts

    @property
    def delimiter(self) -> List[Substitution]:
        """The delimiter."""
        return self.__delimiter

    def describe(self) -> str:
        """Return a text for people."""
        text = ' + '.join(describe_substitutions(each) for each in self.__parts)
        return f"StringJoin('{text}')"

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        delimiter = perform_substitutions(context, self.__delimiter)
        return delimiter.join(perform_substitutions(context, each) for each in self.__parts)
