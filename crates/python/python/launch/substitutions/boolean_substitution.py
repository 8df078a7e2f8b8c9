"""Substitutions: 'true' or 'false' from other ones."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import normalize_to_list_of_substitutions
from launch.utilities.type_utils import perform_typed_substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

    Parsed = Tuple[Type[Substitution], Dict[str, Any]]


def perform_boolean(context: LaunchContext, value: List[Substitution]) -> bool:
    """
    Return the value of substitutions as a bool.

    :raises SubstitutionFailure: if it is none.
    """
    try:
        return perform_typed_substitution(context, value, bool)
    except (TypeError, ValueError) as error:
        raise SubstitutionFailure(str(error)) from error


def boolean_text(value: bool) -> str:
    """Return 'true' or 'false'."""
    return 'true' if value else 'false'


@expose_substitution('not')
class NotSubstitution(Substitution):
    """The opposite."""

    def __init__(self, value: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__value = normalize_to_list_of_substitutions(value)

    parse = parse_arguments('not', 'value')

    @property
    def value(self) -> List[Substitution]:
        """The operand."""
        return self.__value

    def describe(self) -> str:
        """Return a text for people."""
        return f'NotSubstitution({self.__value})'

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'."""
        return boolean_text(not perform_boolean(context, self.__value))


class _Pair(Substitution):
    """Base of the substitutions with two operands."""

    _normalize: Any = staticmethod(normalize_to_list_of_substitutions)

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__()
        self._left = self._normalize(left)
        self._right = self._normalize(right)

    @property
    def left(self) -> List[Substitution]:
        """The left operand."""
        return self._left

    @property
    def right(self) -> List[Substitution]:
        """The right operand."""
        return self._right

    def describe(self) -> str:
        """Return a text for people."""
        return f'{type(self).__name__}({self._left} {self._right})'

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'. Both operands must be valid."""
        left = perform_boolean(context, self._left)
        right = perform_boolean(context, self._right)
        return boolean_text(self.combine([left, right]))

    @staticmethod
    def combine(values: List[bool]) -> bool:
        """Return the result."""
        raise NotImplementedError


@expose_substitution('and')
class AndSubstitution(_Pair):
    """Whether both are true."""

    parse = parse_arguments('and', 'left', 'right')
    combine = staticmethod(all)


@expose_substitution('or')
class OrSubstitution(_Pair):
    """Whether one of two is true."""

    parse = parse_arguments('or', 'left', 'right')
    combine = staticmethod(any)


class _Several(Substitution):
    """Base of the substitutions with any number of operands, all of which must be valid."""

    def __init__(self, *args: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__args = [normalize_to_list_of_substitutions(each) for each in args]

    @classmethod
    def parse(cls, data: Iterable[SomeSubstitutionsType]) -> Parsed:
        """Return the class and its arguments."""
        return cls, {'args': data}

    @property
    def args(self) -> List[List[Substitution]]:
        """The operands."""
        return self.__args

    def describe(self) -> str:
        """Return a text for people."""
        return f"{type(self).__name__}({' '.join(str(each) for each in self.__args)})"

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'."""
        return boolean_text(self.combine(
            [perform_boolean(context, each) for each in self.__args]))

    @staticmethod
    def combine(values: List[bool]) -> bool:
        """Return the result."""
        raise NotImplementedError


@expose_substitution('any')
class AnySubstitution(_Several):
    """Whether one is true."""

    combine = staticmethod(any)


@expose_substitution('all')
class AllSubstitution(_Several):
    """Whether all are true."""

    combine = staticmethod(all)
