"""Signal manager: handlers of signals that run in an asyncio loop."""

from __future__ import annotations

import os
import signal
import socket
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Callable, Dict, Optional, Union

    Handler = Callable[[int], None]


class AsyncSafeSignalManager:
    """
    Calls handlers in a loop when signals arrive, while it is entered.

    Python writes the number of each signal to its wakeup descriptor
    (:func:`signal.set_wakeup_fd`). The manager reads them from the loop, so that a handler
    never interrupts other code. It passes them on to the descriptor that was set before, and
    managers may be nested. Only the main thread can enter one.
    """

    _current: Optional[AsyncSafeSignalManager] = None
    _set_wakeup_fd = staticmethod(signal.set_wakeup_fd)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.__loop = loop
        self.__outer: Optional[AsyncSafeSignalManager] = None
        self.__handlers: Dict[int, Handler] = {}
        self.__next_descriptor = -1
        self.__near: Optional[socket.socket] = None
        self.__far: Optional[socket.socket] = None

    def __enter__(self) -> AsyncSafeSignalManager:
        self.__near, self.__far = socket.socketpair()
        self.__near.setblocking(False)
        self.__far.setblocking(False)
        try:
            self.__next_descriptor = self._set_wakeup_fd(
                self.__far.fileno(), warn_on_full_buffer=False)
        except Exception:
            self.__close()
            raise
        self.__loop.add_reader(self.__near.fileno(), self.__handle_signals)
        self.__outer = AsyncSafeSignalManager._current
        AsyncSafeSignalManager._current = self
        if self.__outer is None:
            # Others set their descriptor behind ours, as asyncio does.
            signal.set_wakeup_fd = _set_next_wakeup_fd
        return self

    def __exit__(self, exc_type: object, exc_value: object, exc_traceback: object) -> None:
        AsyncSafeSignalManager._current = self.__outer
        if self.__outer is None:
            signal.set_wakeup_fd = self._set_wakeup_fd
        self._set_wakeup_fd(self.__next_descriptor)
        self.__next_descriptor = -1
        self.__loop.remove_reader(self.__near.fileno())
        self.__close()

    def __close(self) -> None:
        self.__near.close()
        self.__far.close()
        self.__near = self.__far = None

    def _replace_next_descriptor(self, descriptor: int) -> int:
        before, self.__next_descriptor = self.__next_descriptor, descriptor
        return before

    def __handle_signals(self) -> None:
        while True:
            try:
                numbers = self.__near.recv(4096)
            except InterruptedError:
                continue
            except BlockingIOError:
                return
            if not numbers:
                return
            for number in numbers:
                handler = self.__handlers.get(number)
                if handler is not None:
                    handler(number)
            if self.__next_descriptor != -1:
                try:
                    os.write(self.__next_descriptor, numbers)
                except BlockingIOError:
                    # Its reader has numbers to read anyway.
                    pass

    def handle(
        self, signum: Union[signal.Signals, int], handler: Optional[Handler],
    ) -> Optional[Handler]:
        """
        Set the handler of a signal, or remove it, and return the one before.

        :raises ValueError: if the handler cannot be called or the signal is unknown.
        """
        signum = signal.Signals(signum)
        if handler is not None and not callable(handler):
            raise ValueError('signal handler must be a callable')
        before = self.__handlers.pop(signum, None)
        if handler is not None:
            self.__handlers[signum] = handler
        return before


def _set_next_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
    if threading.current_thread() is not threading.main_thread():
        raise ValueError('set_wakeup_fd only works in main thread of the main interpreter')
    return AsyncSafeSignalManager._current._replace_next_descriptor(fd)
