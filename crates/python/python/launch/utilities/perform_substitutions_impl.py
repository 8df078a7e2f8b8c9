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


def split_words(line: str) -> List[str]:
    """
    Return the words of a command line, split as a shell does.

    :raises ValueError: if a quote is not closed.
    """
    from pteros import _native
    return [''.join(word) for word in _native.split_words([line])]
