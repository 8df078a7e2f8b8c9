"""The kinds of clocks of ROS 2."""

from enum import IntEnum

from rclpy.impl.named_enum import NamedEnum


class ClockType(IntEnum):
    """Source of a clock's time."""

    UNINITIALIZED = 0
    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3


# What times have: equal to the members above, but with the text of ROS 2's C extension.
NativeClockType = NamedEnum(  # type: ignore[misc]
    'ClockType', {kind.name: kind.value for kind in ClockType}, module=__name__)
NATIVE_CLOCK_TYPES = {kind: NativeClockType(kind.value) for kind in ClockType}
