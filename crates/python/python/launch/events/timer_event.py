"""Event: a timer has expired."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.actions import TimerAction


class TimerEvent(Event):
    """A timer has expired."""

    name = 'launch.events.TimerEvent'

    def __init__(self, *, timer_action: TimerAction) -> None:
        self.__timer_action = timer_action

    @property
    def timer_action(self) -> TimerAction:
        """The timer."""
        return self.__timer_action
