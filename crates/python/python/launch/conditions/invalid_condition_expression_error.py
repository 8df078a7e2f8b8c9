"""Error of a condition that is neither true nor false."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.substitution import Substitution


class InvalidConditionExpressionError(ValueError):
    """A condition that is neither true nor false."""

    def __init__(
        self,
        expression: str,
        unexpanded_expression: List[Substitution],
        valid_expressions: List[str],
    ) -> None:
        source = ' + '.join(str(each) for each in unexpanded_expression)
        super().__init__(
            f"invalid condition expression, expected one of [{', '.join(valid_expressions)}] "
            f"but got '{expression}', expanded from '{source}'")
