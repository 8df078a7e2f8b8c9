"""Event: a process has written to stdout."""

from __future__ import annotations

from launch.events.process.process_io import ProcessIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessStdout(ProcessIO):
    """A process has written to stdout."""

    name = 'launch.events.process.ProcessStdout'

    def __init__(self, *, text: bytes, **kwargs: Any) -> None:
        super().__init__(text=text, fd=1, **kwargs)
