"""Matcher of events by name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch.event import Event


def event_named(name: str) -> Callable[[Event], bool]:
    """Return a function that says whether an event has this name."""
    return lambda event: event.name == name
