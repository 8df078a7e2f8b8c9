"""Event: a process has written to stderr."""

from __future__ import annotations

from launch.events.process.process_io import ProcessIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessStderr(ProcessIO):
    """A process has written to stderr."""

    name = 'launch.events.process.ProcessStderr'

    def __init__(self, *, text: bytes, **kwargs: Any) -> None:
        super().__init__(text=text, fd=2, **kwargs)
