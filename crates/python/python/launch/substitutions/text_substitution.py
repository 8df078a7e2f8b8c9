"""Substitution: fixed text."""

from __future__ import annotations

from launch.substitution import Substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class TextSubstitution(Substitution):
    """Fixed text."""

    def __init__(self, *, text: str) -> None:
        super().__init__()
        if not isinstance(text, str):
            raise TypeError(f"TextSubstitution expected a str, got '{type(text)}' instead.")
        self.__text = text

    @property
    def text(self) -> str:
        """The text."""
        return self.__text

    def describe(self) -> str:
        """Return a text for people."""
        return f"'{self.__text}'"

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        return self.__text
