"""The name of the C extension of ROS 2's rclpy, for programs that catch its exceptions."""

from __future__ import annotations

from rclpy.impl.implementation_singleton import rclpy_implementation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(rclpy_implementation, name)
