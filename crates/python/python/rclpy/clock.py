"""Clocks, jumps of ROS time, and sleeping by a clock."""

from __future__ import annotations

from enum import IntEnum

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.clock_type import ClockType, NativeClockType
from rclpy.duration import Duration
from rclpy.exceptions import NotInitializedException
from rclpy.impl.named_enum import NamedEnum
from rclpy.time import Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypedDict

    from rclpy.context import Context

    class TimeJumpDictionary(TypedDict):
        """A jump in the implementation's form."""

        clock_change: ClockChange
        delta: int
else:
    __getattr__ = getter_of(__name__)


class ClockChange(IntEnum):
    """What a jump did to the source of time."""

    ROS_TIME_NO_CHANGE = 1
    ROS_TIME_ACTIVATED = 2
    ROS_TIME_DEACTIVATED = 3
    SYSTEM_TIME_NO_CHANGE = 4


# What jumps have: equal to the members above, but with the text of ROS 2's C extension.
NativeClockChange = NamedEnum(  # type: ignore[misc]
    'ClockChange', {change.name: change.value for change in ClockChange}, module=__name__)


class JumpThreshold:
    """The smallest jumps that a jump callback is called for."""

    def __init__(
        self, *, min_forward: Optional[Duration], min_backward: Optional[Duration],
        on_clock_change: bool = True,
    ) -> None:
        """
        Create a threshold.

        :param min_forward: Smallest jump forward, a positive duration, or ``None`` for none.
        :param min_backward: Smallest jump backward, a negative duration, or ``None``.
        :param on_clock_change: Call it also when ROS time is activated or deactivated.
        :raises ValueError: if a duration has the wrong sign, or no kind of jump is left.
        """
        if min_forward is not None and min_forward.nanoseconds <= 0:
            raise ValueError('min_forward must be a positive non-zero duration')
        if min_backward is not None and min_backward.nanoseconds >= 0:
            raise ValueError('min_backward must be a negative non-zero duration')
        if min_forward is None and min_backward is None and not on_clock_change:
            raise ValueError('At least one jump threshold must be enabled')
        self.min_forward = min_forward
        self.min_backward = min_backward
        self.on_clock_change = on_clock_change


class TimeJump:
    """A jump of ROS time."""

    def __init__(self, clock_change: ClockChange, delta: Duration) -> None:
        if not isinstance(clock_change, (ClockChange, NativeClockChange)):
            raise TypeError(
                'clock_change must be an instance of rclpy.clock.ClockChange, got '
                f'{clock_change!r}')
        self._clock_change = clock_change
        self._delta = delta

    @property
    def clock_change(self) -> ClockChange:
        """What the jump did to the source of time."""
        return self._clock_change

    @property
    def delta(self) -> Duration:
        """Size of the jump; negative if it went back."""
        return self._delta


class JumpHandle:
    """A jump callback; it also works as a context manager that unregisters it."""

    def __init__(
        self, *, clock: Clock, threshold: JumpThreshold,
        pre_callback: Optional[Callable[[], None]],
        post_callback: Optional[Callable[[TimeJumpDictionary], None]],
    ) -> None:
        """Register callbacks; use :meth:`Clock.create_jump_callback`."""
        if pre_callback is None and post_callback is None:
            raise ValueError('One of pre_callback or post_callback must be callable')
        if pre_callback is not None and not callable(pre_callback):
            raise ValueError('pre_callback must be callable if given')
        if post_callback is not None and not callable(post_callback):
            raise ValueError('post_callback must be callable if given')
        self._clock: Optional[Clock] = clock
        self._pre_callback = pre_callback
        self._post_callback = post_callback
        self._callback_id = clock.handle.add_clock_callback(
            pre_callback, post_callback, threshold.on_clock_change,
            threshold.min_forward.nanoseconds if threshold.min_forward is not None else 0,
            threshold.min_backward.nanoseconds if threshold.min_backward is not None else 0)

    def unregister(self) -> None:
        """Remove the callbacks."""
        clock, self._clock = self._clock, None
        if clock is not None:
            clock.handle.remove_clock_callback(self._callback_id)

    def __enter__(self) -> JumpHandle:
        return self

    def __exit__(self, t: Any, v: Any, tb: Any) -> None:
        self.unregister()


class Clock:
    """A source of time."""

    def __new__(cls, *, clock_type: ClockType = ClockType.SYSTEM_TIME) -> Clock:
        """
        Create a clock; a :class:`ROSClock` for ROS time.

        :raises TypeError: if ``clock_type`` is no :class:`ClockType`.
        """
        if isinstance(clock_type, NativeClockType):
            clock_type = ClockType(clock_type.value)
        elif not isinstance(clock_type, ClockType):
            raise TypeError(f'Clock type must be a ClockType enum, got {clock_type!r}')
        if clock_type is ClockType.ROS_TIME and not issubclass(cls, ROSClock):
            cls = ROSClock
        self = super().__new__(cls)
        self.__clock = _native.Clock(int(clock_type))
        self._clock_type = clock_type
        return self

    @property
    def clock_type(self) -> ClockType:
        """The kind of the clock."""
        return self._clock_type

    @property
    def handle(self) -> _native.Clock:
        """The handle of the implementation."""
        return self.__clock

    def __repr__(self) -> str:
        return f'Clock(clock_type={self._clock_type.name})'

    def now(self) -> Time:
        """Return the time of the clock."""
        return Time(nanoseconds=self.__clock.now(), clock_type=self._clock_type)

    def create_jump_callback(
        self, threshold: JumpThreshold, *, pre_callback: Optional[Callable[[], None]] = None,
        post_callback: Optional[Callable[[TimeJump], None]] = None,
    ) -> JumpHandle:
        """
        Register callbacks before and after jumps of the clock.

        :param threshold: The jumps that matter.
        :param pre_callback: Called before the time changes.
        :param post_callback: Called after it with a :class:`TimeJump`.
        :returns: a handle that unregisters them.
        :raises ValueError: if none is given, or one cannot be called.
        """
        if post_callback is not None and callable(post_callback):
            original = post_callback

            def post_callback(jump: TimeJumpDictionary) -> None:  # type: ignore[misc]
                original(TimeJump(
                    NativeClockChange(jump['clock_change']), Duration(nanoseconds=jump['delta'])))

        return JumpHandle(
            clock=self, threshold=threshold, pre_callback=pre_callback,
            post_callback=post_callback)  # type: ignore[arg-type]

    def sleep_until(self, until: Time, context: Optional[Context] = None) -> bool:
        """
        Sleep until the clock shows a time.

        :param until: A time of this kind of clock.
        :param context: The context whose shutdown ends the sleep.
        :returns: ``False`` if the sleep ended before: by shutdown, or because ROS time was
            activated or deactivated.
        :raises ValueError: if ``until`` belongs to another kind of clock.
        :raises NotInitializedException: if the context is not initialized or is shut down.
        """
        if context is None:
            from rclpy.utilities import get_default_context
            context = get_default_context()
        if not context.ok():
            raise NotInitializedException()
        if until.clock_type != self._clock_type:
            raise ValueError(
                f"until's clock type does not match this clock's type "
                f'({until.clock_type.name} and {self._clock_type.name})')
        return self.__clock.sleep_until(until.nanoseconds, context.handle)

    def sleep_for(self, rel_time: Duration, context: Optional[Context] = None) -> bool:
        """
        Sleep for a time of the clock; see :meth:`sleep_until`.

        A negative duration returns at once.

        :raises TypeError: if ``rel_time`` is no :class:`Duration`.
        """
        if not isinstance(rel_time, Duration):
            raise TypeError(
                f'rel_time must be a Duration, such as Duration(seconds=0.5), got {rel_time!r}')
        now_ns = self.__clock.now()
        until_ns = max(0, now_ns + rel_time.nanoseconds)
        return self.sleep_until(
            Time(nanoseconds=until_ns, clock_type=self._clock_type), context=context)


class ROSClock(Clock):
    """The clock of ROS time: system time, or the time of ``/clock``."""

    def __new__(cls) -> ROSClock:
        """Create a clock of ROS time."""
        return super().__new__(cls, clock_type=ClockType.ROS_TIME)  # type: ignore[return-value]

    @property
    def ros_time_is_active(self) -> bool:
        """Whether the time comes from ``/clock``."""
        return self.handle.get_ros_time_override_is_enabled()

    def _set_ros_time_is_active(self, enabled: bool) -> None:
        self.handle.set_ros_time_override_is_enabled(enabled)

    def set_ros_time_override(self, time: Time) -> None:
        """
        Set the time that the clock shows while ROS time is active.

        :raises TypeError: if ``time`` is no :class:`Time`.
        """
        if not isinstance(time, Time):
            raise TypeError(f'Time must be specified as rclpy.time.Time. Received type: {type(time)}')
        self.handle.set_ros_time_override(time.nanoseconds)
