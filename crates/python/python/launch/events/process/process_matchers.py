"""Matchers of processes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    from launch.actions import ExecuteProcess

    Matcher = Callable[[ExecuteProcess], bool]


def _matcher(holds: Callable[[Dict[str, Any]], bool]) -> Matcher:
    def matches(action: ExecuteProcess) -> bool:
        details = action.process_details
        return details is not None and holds(details)

    return matches


def matches_pid(pid: int) -> Matcher:
    """Return a function that says whether a process has this id."""
    return _matcher(lambda details: details.get('pid') == pid)


def matches_name(name: str) -> Matcher:
    """Return a function that says whether a process has this name in the launch."""
    return _matcher(lambda details: details['name'] == name)


def matches_executable(executable: str) -> Matcher:
    """Return a function that says whether a process runs this program."""
    return _matcher(lambda details: details['cmd'][0].endswith(executable))
