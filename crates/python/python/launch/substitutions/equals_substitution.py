"""Substitution: whether two values are equal."""

from __future__ import annotations

import math

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions.boolean_substitution import boolean_text
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch.utilities.type_utils import is_substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

_BOOLEANS = {'true': True, '1': True, 'false': False, '0': False}


def _operand(value: Any) -> List[Substitution]:
    if value is None:
        value = ''
    elif isinstance(value, bool):
        value = boolean_text(value)
    elif isinstance(value, (int, float)) or not is_substitution(value):
        value = str(value)
    return normalize_to_list_of_substitutions(value)


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None


def are_equal(left: str, right: str) -> bool:
    """Compare as truth values, else as numbers, else as text."""
    booleans = _BOOLEANS.get(left.lower()), _BOOLEANS.get(right.lower())
    if None not in booleans:
        return booleans[0] == booleans[1]
    numbers = _number(left), _number(right)
    if None not in numbers:
        return math.isclose(*numbers)
    return left == right


@expose_substitution('equals')
class EqualsSubstitution(Substitution):
    """'true' if two values are equal: as truth values, else as numbers, else as text."""

    def __init__(
        self,
        left: Optional[Union[Any, Iterable[Any]]],
        right: Optional[Union[Any, Iterable[Any]]],
    ) -> None:
        super().__init__()
        self.__left = _operand(left)
        self.__right = _operand(right)

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[EqualsSubstitution], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) != 2:
            raise TypeError('equals substitutions expect 2 arguments')
        return cls, {'left': data[0], 'right': data[1]}

    @property
    def left(self) -> List[Substitution]:
        """The left operand."""
        return self.__left

    @property
    def right(self) -> List[Substitution]:
        """The right operand."""
        return self.__right

    def describe(self) -> str:
        """Return a text for people."""
        return f'{type(self).__name__}({self.__left} {self.__right})'

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'."""
        return boolean_text(are_equal(
            perform_substitutions(context, self.__left),
            perform_substitutions(context, self.__right)))
