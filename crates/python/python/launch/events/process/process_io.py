"""Event: a process has read or written."""

from __future__ import annotations

from launch.events.process.running_process_event import RunningProcessEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessIO(RunningProcessEvent):
    """A process has read or written."""

    name = 'launch.events.process.ProcessIO'

    def __init__(self, *, text: bytes, fd: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__text = text
        self.__descriptor = fd

    @property
    def text(self) -> bytes:
        """The bytes; a line may be cut in two."""
        return self.__text

    @property
    def from_stdin(self) -> bool:
        """Whether it has read from stdin."""
        return self.__descriptor == 0

    @property
    def from_stdout(self) -> bool:
        """Whether it has written to stdout."""
        return self.__descriptor == 1

    @property
    def from_stderr(self) -> bool:
        """Whether it has written to stderr."""
        return self.__descriptor == 2
