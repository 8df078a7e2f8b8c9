"""Event queue: the waiting events of a launch, with output of processes behind all others."""

from __future__ import annotations

import asyncio
import collections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List

OUTPUT_BYTES_MAX = 1 << 18
"""The bytes of waiting output with which output of processes is read no further."""


def _output_size(event: Any) -> int:
    """Return the bytes of output that an event holds; 0 for other events."""
    is_output = getattr(event, 'from_stdout', False) or getattr(event, 'from_stderr', False)
    return max(1, len(event.text)) if is_output else 0


class EventQueue(asyncio.Queue):
    """
    A queue without a limit for events, from which output of processes comes last.

    Events of one process keep their order: its start and its end stay behind its output.
    Readers of output ask :meth:`has_room` first, which bounds the waiting output. Not
    thread-safe.
    """

    def _init(self, maxsize: int) -> None:
        # The base class looks at the length of `_queue` alone.
        self._queue: Any = self
        self.__first: Deque[Any] = collections.deque()
        self.__output: Deque[Any] = collections.deque()
        self.__output_bytes = 0
        self.__output_events = 0
        self.__waiting: Dict[int, int] = {}
        self.__on_room: List[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self.__first) + len(self.__output)

    def _put(self, item: Any) -> None:
        size = _output_size(item)
        # A signal has an action as well, and must not wait.
        action = getattr(item, 'action', None) if hasattr(item, 'process_name') else None
        if size == 0 and id(action) not in self.__waiting:
            self.__first.append(item)
            return
        self.__output_bytes += size
        self.__output_events += size > 0
        self.__waiting[id(action)] = self.__waiting.get(id(action), 0) + 1
        self.__output.append((item, id(action), size))

    def _get(self) -> Any:
        if self.__first:
            return self.__first.popleft()
        item, action, size = self.__output.popleft()
        self.__output_bytes -= size
        self.__output_events -= size > 0
        self.__waiting[action] -= 1
        if self.__waiting[action] == 0:
            del self.__waiting[action]
        if self.__on_room and self.__output_bytes <= OUTPUT_BYTES_MAX // 2:
            callbacks, self.__on_room = self.__on_room, []
            for callback in callbacks:
                callback()
        return item

    def has_only_output(self) -> bool:
        """Return whether only output of processes waits, or nothing."""
        return len(self) == self.__output_events

    def has_room(self, on_room: Callable[[], None]) -> bool:
        """Return whether more output may be read; if not, call a function once it may."""
        if self.__output_bytes < OUTPUT_BYTES_MAX:
            return True
        self.__on_room.append(on_room)
        return False
