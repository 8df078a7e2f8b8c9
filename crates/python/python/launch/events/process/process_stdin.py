"""Event: a process has read from stdin."""

from __future__ import annotations

from launch.events.process.process_io import ProcessIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessStdin(ProcessIO):
    """A process has read from stdin."""

    name = 'launch.events.process.ProcessStdin'

    def __init__(self, *, text: bytes, **kwargs: Any) -> None:
        super().__init__(text=text, fd=0, **kwargs)
