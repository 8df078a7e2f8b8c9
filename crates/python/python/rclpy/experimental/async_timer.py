"""Timers of asynchronous nodes."""

from rclpy.experimental._async_entity import AsyncEntity
from rclpy.timer import Timer


class AsyncTimer(AsyncEntity, Timer):
    """Calls back once a period; the callback may be a coroutine function."""
