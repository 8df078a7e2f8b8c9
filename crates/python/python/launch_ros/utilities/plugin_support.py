"""Versions of extension points."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple


class PluginException(Exception):
    """An extension of another version."""


def _version(text: str) -> Tuple[int, int]:
    major, _, rest = text.partition('.')
    return int(major), int(rest.partition('.')[0] or 0)


def satisfies_version(version: str, caret_range: str) -> None:
    """
    Check that a version is in a caret range such as '^0.1'.

    :raises PluginException: if it is not.
    """
    assert caret_range.startswith('^'), 'Only supports caret ranges'
    point, lowest = _version(version), _version(caret_range[1:])
    above = (lowest[0] + 1, 0) if lowest[0] > 0 else (0, lowest[1] + 1)
    if point < lowest:
        raise PluginException(
            f"Extension point is too old ({version}), the extension requires '{caret_range}'")
    if point >= above:
        raise PluginException(
            f'Extension point is newer ({version}), than what the extension supports '
            f"'{caret_range}'")
