"""The kinds of clocks of ROS 2."""

from enum import IntEnum


class ClockType(IntEnum):
    """Source of a clock's time."""

    UNINITIALIZED = 0
    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3
