"""Substitution: text that is known when the launch runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class Substitution:
    """Base of all substitutions."""

    def describe(self) -> str:
        """Return a text for people."""
        return repr(self)

    def perform(self, context: LaunchContext) -> str:
        """Return the text in this context."""
        raise NotImplementedError(f'{type(self).__name__} does not implement perform()')
