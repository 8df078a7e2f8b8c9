"""Event: a process has ended."""

from __future__ import annotations

from launch.events.process.running_process_event import RunningProcessEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessExited(RunningProcessEvent):
    """A process has ended."""

    name = 'launch.events.process.ProcessExited'

    def __init__(self, *, returncode: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__returncode = returncode

    @property
    def returncode(self) -> int:
        """The exit code; the negative number of the signal that ended it."""
        return self.__returncode
