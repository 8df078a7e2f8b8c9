"""Event: an action is complete."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.action import Action


class ExecutionComplete(Event):
    """An action is complete: its future is done, or it has none and was carried out."""

    name = 'launch.events.ExecutionComplete'

    def __init__(self, *, action: Action) -> None:
        self.__action = action

    @property
    def action(self) -> Action:
        """The action."""
        return self.__action
