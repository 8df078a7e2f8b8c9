"""Substitution: whether two values differ."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitutions.boolean_substitution import boolean_text
from launch.substitutions.equals_substitution import EqualsSubstitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


@expose_substitution('not-equals')
class NotEqualsSubstitution(EqualsSubstitution):
    """'true' if two values differ."""

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'."""
        return boolean_text(super().perform(context) == 'false')
