"""Condition: an expression is true."""

from __future__ import annotations

from launch.condition import Condition
from launch.conditions.evaluate_condition_expression_impl import evaluate_condition_expression
from launch.utilities import normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


class IfCondition(Condition):
    """Holds if the text is 'true' or '1'; 'false' and '0' are the opposite."""

    def __init__(self, predicate_expression: SomeSubstitutionsType) -> None:
        self.__predicate_expression = normalize_to_list_of_substitutions(predicate_expression)
        super().__init__(predicate=self._predicate_func)

    def _predicate_func(self, context: LaunchContext) -> bool:
        return evaluate_condition_expression(context, self.__predicate_expression)
