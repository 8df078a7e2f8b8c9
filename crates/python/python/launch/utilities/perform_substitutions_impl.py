"""Text of a list of substitutions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List

    from launch.launch_context import LaunchContext
    from launch.substitution import Substitution


def perform_substitutions(context: LaunchContext, subs: List[Substitution]) -> str:
    """Return the joined texts."""
    return ''.join([context.perform_substitution(each) for each in subs])


def describe_substitutions(subs: Iterable[Substitution]) -> str:
    """Return the joined descriptions, for people."""
    return ' + '.join([each.describe() for each in subs])
