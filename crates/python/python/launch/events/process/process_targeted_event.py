"""Base of the events that are for some processes."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch.actions import ExecuteLocal


class ProcessTargetedEvent(Event):
    """An event that is for some processes."""

    name = 'launch.events.process.ProcessTargetedEvent'

    def __init__(self, *, process_matcher: Callable[[ExecuteLocal], bool]) -> None:
        super().__init__()
        self.__process_matcher = process_matcher

    @property
    def process_matcher(self) -> Callable[[ExecuteLocal], bool]:
        """Says whether it is for a process."""
        return self.__process_matcher
