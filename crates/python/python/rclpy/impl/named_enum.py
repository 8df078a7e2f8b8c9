"""Base of the enums that ROS 2's rclpy has from its C extension."""

from enum import IntEnum


class NamedEnum(IntEnum):
    """An enum whose text names the member, in every version of Python: ``'GoalEvent.ABORT'``."""

    def __str__(self) -> str:
        return f"{getattr(self, '_shown_as', type(self).__name__)}.{self.name}"

    def __repr__(self) -> str:
        return f'<{self}: {self.value}>'

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)
