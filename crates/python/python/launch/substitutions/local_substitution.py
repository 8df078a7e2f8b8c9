"""Substitution: a local of the context."""

from __future__ import annotations

from launch.substitution import Substitution
from launch.utilities import ensure_argument_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from launch.launch_context import LaunchContext


class LocalSubstitution(Substitution):
    """The value of an expression on a local of the context, such as ``event.pid``."""

    def __init__(self, expression: str, description: Optional[str] = None) -> None:
        super().__init__()
        ensure_argument_type(expression, str, 'expression', 'LocalSubstitution')
        self.__expression = expression
        self.__description = description

    @property
    def expression(self) -> str:
        """The expression."""
        return self.__expression

    @property
    def description(self) -> Optional[str]:
        """What it is, for people."""
        return self.__description

    def describe(self) -> str:
        """Return a text for people."""
        text = self.__expression if self.__description is None else self.__description
        return f"LocalVar('{text}')"

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        return eval(f'context.locals.{self.__expression}', {'context': context})
