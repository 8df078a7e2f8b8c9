"""Truth value of text."""

from __future__ import annotations

from launch.conditions.invalid_condition_expression_error import InvalidConditionExpressionError
from launch.utilities import perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.substitution import Substitution

VALID_TRUE_EXPRESSIONS = ['true', '1']
VALID_FALSE_EXPRESSIONS = ['false', '0']


def evaluate_condition_expression(
    context: LaunchContext, expression: List[Substitution],
) -> bool:
    """
    Return the truth value of substitutions.

    :raises InvalidConditionExpressionError: if it is neither true nor false.
    """
    text = perform_substitutions(context, expression).strip().lower()
    if text in VALID_TRUE_EXPRESSIONS:
        return True
    if text in VALID_FALSE_EXPRESSIONS:
        return False
    raise InvalidConditionExpressionError(
        text, expression, VALID_TRUE_EXPRESSIONS + VALID_FALSE_EXPRESSIONS)
