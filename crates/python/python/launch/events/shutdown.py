"""Event: the launch ends."""

from __future__ import annotations

from launch.event import Event


class Shutdown(Event):
    """The launch ends."""

    name = 'launch.events.Shutdown'

    def __init__(
        self, *, reason: str = 'reason not given', due_to_sigint: bool = False,
    ) -> None:
        self.__reason = reason
        self.__due_to_sigint = due_to_sigint

    @property
    def reason(self) -> str:
        """Why, for people."""
        return self.__reason

    @property
    def due_to_sigint(self) -> bool:
        """Whether the processes have already received SIGINT."""
        return self.__due_to_sigint
