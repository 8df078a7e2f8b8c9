"""Condition: an expression is false."""

from __future__ import annotations

from launch.conditions.if_condition import IfCondition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class UnlessCondition(IfCondition):
    """Holds if the text is 'false' or '0'; 'true' and '1' are the opposite."""

    def _predicate_func(self, context: LaunchContext) -> bool:
        return not super()._predicate_func(context)
