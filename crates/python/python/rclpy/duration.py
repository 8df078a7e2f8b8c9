"""Time spans with nanosecond resolution."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.constants import S_TO_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    import builtin_interfaces.msg
else:
    __getattr__ = getter_of(__name__)

_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1


class Duration:
    """A span of time, positive or negative, within 64 bits of nanoseconds."""

    __slots__ = ('_nanoseconds', '__weakref__')

    def __init__(self, *, seconds: Union[int, float] = 0, nanoseconds: int = 0) -> None:
        """
        Create a duration as the sum of both arguments.

        :param seconds: Seconds, possibly with a fraction.
        :param nanoseconds: Nanoseconds to add.
        :raises OverflowError: if the sum does not fit 64 bits.
        """
        total = int(seconds * S_TO_NS) + int(nanoseconds)
        if not _INT64_MIN <= total <= _INT64_MAX:
            raise OverflowError(
                f'a duration of {total} ns does not fit 64 bits; '
                'use at most 9223372036.8 seconds')
        self._nanoseconds = total

    @property
    def nanoseconds(self) -> int:
        """The whole span in nanoseconds."""
        return self._nanoseconds

    def __repr__(self) -> str:
        return f'Duration(nanoseconds={self._nanoseconds})'

    def __str__(self) -> str:
        if self == Infinite:
            return 'Infinite'
        return f'{self._nanoseconds} nanoseconds'

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds == other._nanoseconds
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds != other._nanoseconds
        return NotImplemented

    def __add__(self, other: Duration) -> Duration:
        if isinstance(other, Duration):
            return Duration(nanoseconds=self._nanoseconds + other._nanoseconds)
        return NotImplemented

    def __sub__(self, other: Duration) -> Duration:
        if isinstance(other, Duration):
            return Duration(nanoseconds=self._nanoseconds - other._nanoseconds)
        return NotImplemented

    def __mul__(self, other: Union[int, float]) -> Duration:
        if isinstance(other, int):
            return Duration(nanoseconds=self._nanoseconds * other)
        if isinstance(other, float):
            if other == float('inf'):
                return Infinite
            if other - other != 0.0:
                raise ValueError(f"Can't multiply duration with {other}")
            return Duration(nanoseconds=int(self._nanoseconds * other))
        return NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds < other._nanoseconds
        return NotImplemented

    def __le__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds <= other._nanoseconds
        return NotImplemented

    def __gt__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds > other._nanoseconds
        return NotImplemented

    def __ge__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds >= other._nanoseconds
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_msg(self) -> builtin_interfaces.msg.Duration:
        """Return the span as a ``builtin_interfaces/msg/Duration``."""
        from builtin_interfaces.msg import Duration as DurationMsg
        seconds, nanoseconds = divmod(self._nanoseconds, S_TO_NS)
        return DurationMsg(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(cls, msg: builtin_interfaces.msg.Duration) -> Duration:
        """
        Create a duration from a ``builtin_interfaces/msg/Duration``.

        :raises TypeError: if ``msg`` is of another type.
        """
        from builtin_interfaces.msg import Duration as DurationMsg
        if not isinstance(msg, DurationMsg):
            raise TypeError(
                f'expected a builtin_interfaces.msg.Duration, got {type(msg).__name__}')
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec)

    def get_c_duration(self) -> Duration:
        """Return the form in which the implementation takes durations: the object itself."""
        return self


Infinite = Duration(nanoseconds=_INT64_MAX)
"""The longest duration; it stands for "for ever" in QoS policies."""
