"""Condition: decides whether an action is carried out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    from launch.launch_context import LaunchContext


class Condition:
    """A predicate on the launch context; false without one."""

    def __init__(self, *, predicate: Optional[Callable[[LaunchContext], bool]] = None) -> None:
        self._predicate = predicate

    def describe(self) -> str:
        """Return a text for people."""
        return repr(self)

    def evaluate(self, context: LaunchContext) -> bool:
        """Return the value of the predicate."""
        return False if self._predicate is None else self._predicate(context)
