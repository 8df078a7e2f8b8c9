"""The clock of asynchronous nodes."""

from __future__ import annotations

import asyncio

from rclpy.clock import ClockChange, JumpThreshold, ROSClock
from rclpy.duration import Duration
from rclpy.exceptions import TimeSourceChangedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Set

    from rclpy.clock import TimeJump

_ANY_JUMP = JumpThreshold(min_forward=Duration(nanoseconds=1), min_backward=None)


class AsyncClock(ROSClock):
    """A clock of ROS time whose sleep lets the event loop run."""

    def __init__(self) -> None:
        # For the end of the node. The clock itself finds those that a jump wakes.
        self._sleepers: Set[asyncio.Future] = set()
        self._is_destroyed = False

    def _destroy(self) -> None:
        """Cancel all sleeps."""
        self._is_destroyed = True
        for sleeper in list(self._sleepers):
            sleeper.cancel()

    async def sleep(self, duration_sec: float) -> None:
        """
        Sleep for a time of this clock: that of ``/clock`` with ``use_sim_time``.

        :param duration_sec: Seconds; zero and less let other tasks run once.
        :raises TimeSourceChangedError: if ROS time is activated or deactivated meanwhile.
        :raises RuntimeError: if the node was destroyed.
        :raises CancelledError: if the node is destroyed meanwhile.
        """
        if self._is_destroyed:
            raise RuntimeError('Cannot sleep on a destroyed clock')
        duration = Duration(seconds=duration_sec)
        if duration.nanoseconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future = loop.create_future()
        until = self.now() + duration

        def wake(jump: Optional[TimeJump] = None) -> None:
            if sleeper.done():
                return
            if jump is not None and jump.clock_change != ClockChange.ROS_TIME_NO_CHANGE:
                sleeper.set_exception(TimeSourceChangedError())
            elif jump is None or self.now() >= until:
                sleeper.set_result(None)

        alarm = None if self.ros_time_is_active else loop.call_later(duration_sec, wake)
        self._sleepers.add(sleeper)
        try:
            with self.create_jump_callback(_ANY_JUMP, post_callback=wake):
                await sleeper
        finally:
            self._sleepers.discard(sleeper)
            if alarm is not None:
                alarm.cancel()
