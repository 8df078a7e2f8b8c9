"""Timers and rates."""

from __future__ import annotations

import threading

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.clock_type import ClockType
from rclpy.exceptions import ROSInterruptException
from rclpy.impl.node_entity import NodeEntity
from rclpy.time import Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from rclpy.callback_groups import CallbackGroup
    from rclpy.clock import Clock
    from rclpy.context import Context
else:
    __getattr__ = getter_of(__name__)

SHUTDOWN_POLL_S = 0.5
"""Time between two looks for a shutdown by Ctrl-C, which wakes executors but no other waits."""


class TimerInfo:
    """When a timer was due and when it was called: the argument of a callback that asks for it."""

    def __init__(
        self, *, expected_call_time: int = 0, actual_call_time: int = 0,
        clock_type: ClockType = ClockType.SYSTEM_TIME,
    ) -> None:
        """
        Create an info; the times are nanoseconds of the timer's clock.

        :raises TypeError: if ``clock_type`` is no :class:`ClockType`.
        :raises ValueError: if a time is negative.
        """
        if not isinstance(clock_type, ClockType):
            raise TypeError(f'Clock type must be a ClockType enum, got {clock_type!r}')
        if expected_call_time < 0 or actual_call_time < 0:
            raise ValueError(
                'call time values must not be negative, got '
                f'{min(expected_call_time, actual_call_time)}')
        self._expected_call_time = Time(nanoseconds=expected_call_time, clock_type=clock_type)
        self._actual_call_time = Time(nanoseconds=actual_call_time, clock_type=clock_type)

    @property
    def expected_call_time(self) -> Time:
        """The time for which the call was due."""
        return self._expected_call_time

    @property
    def actual_call_time(self) -> Time:
        """The time of the call."""
        return self._actual_call_time


def _asks_for_info(callback: Any) -> bool:
    """Return whether a callback has a parameter that is annotated as :class:`TimerInfo`."""
    # Most callbacks take nothing; they need no look at their signature.
    code = getattr(callback, '__code__', None)
    arguments = getattr(callback, '__annotations__', None)
    if code is not None and not arguments:
        return False
    import inspect
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.annotation in (TimerInfo, 'TimerInfo') for parameter in parameters)


class Timer(NodeEntity):
    """A callback that an executor runs periodically."""

    # Where `src/spin.rs` finds the callback that it calls as `_executor_call` does.
    _plain_callback: Optional[str] = 'callback'

    def __init__(
        self, callback: Optional[Callable[[], Any]], callback_group: CallbackGroup,
        timer_period_ns: int, clock: Clock, *, context: Optional[Context] = None,
        autostart: bool = True,
    ) -> None:
        """
        Create a timer; use :meth:`rclpy.node.Node.create_timer`.

        :param callback: Called without arguments, or with a :class:`TimerInfo` if a parameter
            is annotated so, as later releases do.
        """
        if context is None:
            from rclpy.utilities import get_default_context
            context = get_default_context()
        self._context = context
        self._clock = clock
        self.__timer = _native.Timer(
            clock.handle, context._require_handle(), int(timer_period_ns), autostart)
        # Takes a call that is due, without a call of Python code.
        self._executor_take: Any = self.__timer.take_due
        if callback is not None and _asks_for_info(callback):
            self._executor_take = self._take_info
            # The native module calls plain callbacks without arguments.
            self._plain_callback = None
        self.callback = callback
        self.callback_group = callback_group
        self._executor_event = False

    @property
    def handle(self) -> _native.Timer:
        """The handle of the implementation."""
        return self.__timer

    def destroy(self) -> None:
        """Destroy the timer; use ``Node.destroy_timer``."""
        self.__timer.destroy_when_not_in_use()

    @property
    def clock(self) -> Clock:
        """The clock of the timer."""
        return self._clock

    @property
    def timer_period_ns(self) -> int:
        """The period in nanoseconds."""
        return int(self.__timer.get_timer_period())

    @timer_period_ns.setter
    def timer_period_ns(self, value: int) -> None:
        self.__timer.change_timer_period(int(value))

    def is_ready(self) -> bool:
        """Return whether the timer is due."""
        return self.__timer.is_ready()

    def is_canceled(self) -> bool:
        """Return whether the timer is cancelled."""
        return self.__timer.is_timer_canceled()

    def cancel(self) -> None:
        """Stop the timer until :meth:`reset`."""
        self.__timer.cancel_timer()

    def reset(self) -> None:
        """Start the period again from now, also after :meth:`cancel`."""
        self.__timer.reset_timer()

    def time_since_last_call(self) -> int:
        """Return the nanoseconds since the last call."""
        return self.__timer.time_since_last_call()

    def time_until_next_call(self) -> Optional[int]:
        """Return the nanoseconds until the next call, or ``None`` if it is cancelled."""
        return self.__timer.time_until_next_call()

    def _take_info(self, executor: Any) -> Any:
        # One step: another thread may cancel the timer meanwhile.
        times = self.__timer.take_due_with_info()
        if times is None:
            return None
        expected, actual = times
        return (TimerInfo(
            expected_call_time=expected, actual_call_time=actual,
            clock_type=self._clock.clock_type),)

    def _executor_call(self, *info: TimerInfo) -> Any:
        return self.callback(*info) if self.callback is not None else None


class Rate:
    """Sleeps of a fixed frequency, in a thread that does not spin."""

    def __init__(self, timer: Timer, *, context: Context) -> None:
        """Create a rate; use :meth:`rclpy.node.Node.create_rate`."""
        self._timer = timer
        self._timer.callback = self._wake
        self._condition = threading.Condition()
        # Set by a tick until a sleep ends: a late loop does not sleep.
        self._is_due = False
        self._sleepers = 0
        self._is_shutdown = False
        self._is_destroyed = False
        self._context = context
        context.on_shutdown(self._on_shutdown)

    def _wake(self) -> None:
        with self._condition:
            self._is_due = True
            self._condition.notify_all()

    def _on_shutdown(self) -> None:
        with self._condition:
            self._is_shutdown = True
            self._condition.notify_all()
        self.destroy()

    def destroy(self) -> None:
        """Wake all sleepers; use ``Node.destroy_rate``."""
        with self._condition:
            self._is_destroyed = True
            if self._sleepers == 0:
                self._timer.destroy()
            self._condition.notify_all()

    def sleep(self) -> None:
        """
        Sleep until the timer is due. Another thread must spin the node.

        Return at once if it was due since the last sleep.

        :raises ROSInterruptException: if the context is shut down.
        :raises RuntimeError: if the rate was destroyed before.
        """
        with self._condition:
            if self._is_shutdown or not self._context.ok():
                raise ROSInterruptException()
            if self._is_destroyed:
                raise RuntimeError('Rate cannot sleep because it has been destroyed')
            if self._timer.is_canceled():
                raise RuntimeError('Rate cannot sleep because its timer is canceled')
            self._sleepers += 1
            try:
                while not (self._is_due or self._is_shutdown or self._is_destroyed):
                    if not self._condition.wait(SHUTDOWN_POLL_S) and not self._context.ok():
                        raise ROSInterruptException()
            finally:
                self._sleepers -= 1
                if self._sleepers == 0:
                    self._is_due = False
                    if self._is_destroyed:
                        self._timer.destroy()
            if self._is_shutdown:
                raise ROSInterruptException()
