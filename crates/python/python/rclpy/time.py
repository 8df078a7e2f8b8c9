"""Points in time of a clock."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.clock_type import NATIVE_CLOCK_TYPES, ClockType, NativeClockType
from rclpy.constants import S_TO_NS
from rclpy.duration import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple, Union

    import builtin_interfaces.msg
else:
    __getattr__ = getter_of(__name__)

_INT64_MAX = (1 << 63) - 1


def _other_clock(left: Time, right: Time) -> TypeError:
    return TypeError(
        "Can't compare times with different clock types "
        f'({left._clock_type.name} and {right._clock_type.name})')


class Time:
    """A point in time, counted from the epoch of its clock, never negative."""

    __slots__ = ('_nanoseconds', '_clock_type', '__weakref__')

    def __init__(
        self, *, seconds: Union[int, float] = 0, nanoseconds: int = 0,
        clock_type: ClockType = ClockType.SYSTEM_TIME,
    ) -> None:
        """
        Create a time as the sum of seconds and nanoseconds.

        :param seconds: Seconds since the clock's epoch, possibly with a fraction.
        :param nanoseconds: Nanoseconds to add.
        :param clock_type: The kind of clock that the time belongs to.
        :raises TypeError: if ``clock_type`` is no :class:`ClockType`.
        :raises ValueError: if an argument is negative.
        :raises OverflowError: if the sum does not fit 63 bits.
        """
        if isinstance(clock_type, NativeClockType):
            clock_type = ClockType(clock_type.value)
        elif not isinstance(clock_type, ClockType):
            raise TypeError(f'clock_type must be a ClockType, got {clock_type!r}')
        if seconds < 0:
            raise ValueError(f'seconds must not be negative, got {seconds}')
        if nanoseconds < 0:
            raise ValueError(f'nanoseconds must not be negative, got {nanoseconds}')
        total = int(seconds * S_TO_NS) + int(nanoseconds)
        if total > _INT64_MAX:
            raise OverflowError(
                f'a time of {total} ns does not fit 63 bits; use at most 9223372036.8 seconds')
        self._nanoseconds = total
        self._clock_type = clock_type

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds since the clock's epoch."""
        return self._nanoseconds

    def seconds_nanoseconds(self) -> Tuple[int, int]:
        """Return whole seconds and the nanoseconds of the last one."""
        return divmod(self._nanoseconds, S_TO_NS)

    @property
    def clock_type(self) -> ClockType:
        """The kind of clock that the time belongs to."""
        return NATIVE_CLOCK_TYPES[self._clock_type]

    def __repr__(self) -> str:
        return f'Time(nanoseconds={self._nanoseconds}, clock_type={self._clock_type.name})'

    def __add__(self, other: Duration) -> Time:
        if not isinstance(other, Duration):
            return NotImplemented
        try:
            return Time(
                nanoseconds=self._nanoseconds + other.nanoseconds, clock_type=self._clock_type)
        except OverflowError as error:
            raise OverflowError('Addition leads to overflow in C storage.') from error

    def __radd__(self, other: Duration) -> Time:
        return self.__add__(other)

    def __sub__(self, other: Union[Time, Duration]) -> Union[Time, Duration]:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise TypeError(
                    "Can't subtract times with different clock types "
                    f'({self._clock_type.name} and {other._clock_type.name})')
            return Duration(nanoseconds=self._nanoseconds - other._nanoseconds)
        if isinstance(other, Duration):
            difference = self._nanoseconds - other.nanoseconds
            if difference < 0:
                raise ValueError('Subtraction leads to negative time.')
            return Time(nanoseconds=difference, clock_type=self._clock_type)
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise _other_clock(self, other)
            return self._nanoseconds == other._nanoseconds
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        if isinstance(other, Time):
            return not self == other
        return NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise _other_clock(self, other)
            return self._nanoseconds < other._nanoseconds
        return NotImplemented

    def __le__(self, other: object) -> bool:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise _other_clock(self, other)
            return self._nanoseconds <= other._nanoseconds
        return NotImplemented

    def __gt__(self, other: object) -> bool:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise _other_clock(self, other)
            return self._nanoseconds > other._nanoseconds
        return NotImplemented

    def __ge__(self, other: object) -> bool:
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise _other_clock(self, other)
            return self._nanoseconds >= other._nanoseconds
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_msg(self) -> builtin_interfaces.msg.Time:
        """Return the time as a ``builtin_interfaces/msg/Time``."""
        from builtin_interfaces.msg import Time as TimeMsg
        seconds, nanoseconds = divmod(self._nanoseconds, S_TO_NS)
        return TimeMsg(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(
        cls, msg: builtin_interfaces.msg.Time, clock_type: ClockType = ClockType.ROS_TIME,
    ) -> Time:
        """
        Create a time from a ``builtin_interfaces/msg/Time``.

        :param clock_type: The kind of clock; the message does not carry it.
        :raises TypeError: if ``msg`` is of another type.
        """
        from builtin_interfaces.msg import Time as TimeMsg
        if not isinstance(msg, TimeMsg):
            raise TypeError(f'expected a builtin_interfaces.msg.Time, got {type(msg).__name__}')
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec, clock_type=clock_type)
