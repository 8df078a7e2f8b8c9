"""Substitution: one of two values."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.boolean_substitution import perform_boolean
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('if')
class IfElseSubstitution(Substitution):
    """One value if a condition is true, else another one."""

    def __init__(
        self,
        condition: SomeSubstitutionsType,
        if_value: SomeSubstitutionsType = '',
        else_value: SomeSubstitutionsType = '',
    ) -> None:
        super().__init__()
        if if_value == else_value == '':
            raise RuntimeError('One of if_value and else_value must be specified')
        self._condition = normalize_to_list_of_substitutions(condition)
        self._if_value = normalize_to_list_of_substitutions(if_value)
        self._else_value = normalize_to_list_of_substitutions(else_value)

    parse = parse_arguments('if', 'condition', 'if_value', 'else_value', optional=1)

    @property
    def condition(self) -> List[Substitution]:
        """The condition."""
        return self._condition

    @property
    def if_value(self) -> List[Substitution]:
        """The value if the condition is true."""
        return self._if_value

    @property
    def else_value(self) -> List[Substitution]:
        """The value if it is false."""
        return self._else_value

    def describe(self) -> str:
        """Return a text for people."""
        return f'IfElseSubstitution({self.condition}, {self.if_value}, {self.else_value})'

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        is_true = perform_boolean(context, self._condition)
        return perform_substitutions(context, self._if_value if is_true else self._else_value)
