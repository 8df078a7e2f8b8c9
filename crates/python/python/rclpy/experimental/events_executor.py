"""
Events executor: runs callbacks in one thread, in the order of events, without callback groups.

It came with ROS 2 Kilted. The executors of this rclpy register entities once and are told what is
ready, so it is no faster than the `SingleThreadedExecutor`.
"""

from __future__ import annotations

import threading
from time import monotonic

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from rclpy.context import Context
    from rclpy.node import Node
    from rclpy.task import Future


class EventsExecutor(SingleThreadedExecutor):
    """
    Runs callbacks in the thread that spins.

    Callback groups have no effect: a coroutine that waits keeps nothing from running. One thread
    may spin at a time. The end of the context ends spinning without an exception, unlike in the
    other executors.
    """

    def __init__(self, *, context: Optional[Context] = None) -> None:
        """
        Create an executor without nodes.

        :param context: The context of its nodes; ``None`` stands for the default one.
        :raises NotInitializedException: if the context is not initialized.
        """
        super().__init__(context=context)
        self._spinning = threading.Lock()

    def _collect(self, nodes: List[Node]) -> None:
        super()._collect(nodes)
        for entry in (*self._entries.values(), *self._dynamic):
            entry.group = entry.lock = entry.acquire = entry.release = None

    def _spin_alone(self, timeout_sec: Optional[float], condition: Any, is_once: bool) -> None:
        """
        Spin while nobody else does.

        :raises RuntimeError: if a thread spins already, also this one.
        """
        if not self._spinning.acquire(blocking=False):
            raise RuntimeError('Attempt to spin an already-spinning Executor')
        try:
            if is_once:
                self._spin_once_impl(timeout_sec, condition)
            elif timeout_sec is None or timeout_sec < 0:
                while not self._is_shutdown and not (condition and condition()):
                    self._spin_once_impl(None, condition)
            else:
                until = monotonic() + timeout_sec
                left = timeout_sec
                while not self._is_shutdown and not (condition and condition()):
                    self._spin_once_impl(max(left, 0.0), condition)
                    left = until - monotonic()
                    if left <= 0:
                        return
        except ExternalShutdownException:
            pass
        finally:
            self._spinning.release()

    def spin(self, timeout_sec: Optional[float] = None) -> None:
        """
        Run callbacks until the context or the executor is shut down.

        :param timeout_sec: Longest time; ``None`` and negative numbers stand for "for ever".
        :raises RuntimeError: if a thread spins already.
        """
        self._spin_alone(timeout_sec, None, is_once=False)

    def spin_once(self, timeout_sec: Optional[float] = None) -> None:
        """
        Wait for one callback and run it.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :raises RuntimeError: if a thread spins already.
        """
        self._spin_alone(timeout_sec, None, is_once=True)

    def spin_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """
        Run callbacks until a future is done or cancelled.

        :param timeout_sec: Longest time; ``None`` and negative numbers stand for "for ever".
            It is no error when it has passed.
        :raises RuntimeError: if a thread spins already.
        """
        self._wake_when_done(future)
        self._spin_alone(timeout_sec, lambda: _is_over(future), is_once=False)

    def spin_once_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """Wait for one callback and run it, or return when a future is done."""
        self._wake_when_done(future)
        self._spin_alone(timeout_sec, lambda: _is_over(future), is_once=True)


def _is_over(future: Any) -> bool:
    return future.done() or future.cancelled()
