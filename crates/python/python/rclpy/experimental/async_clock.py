"""The clock of asynchronous nodes."""

from __future__ import annotations

import asyncio

from rclpy.clock import ClockChange, JumpThreshold, ROSClock
from rclpy.duration import Duration
from rclpy.exceptions import TimeSourceChangedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional

    from rclpy.clock import TimeJump
    from rclpy.time import Time


class AsyncClock(ROSClock):
    """A clock of ROS time whose sleep lets the event loop run."""

    def __init__(self) -> None:
        self._sleepers: Dict[asyncio.Future, Optional[Time]] = {}
        self._is_destroyed = False
        self._jumps = self.create_jump_callback(
            JumpThreshold(min_forward=Duration(nanoseconds=1), min_backward=None),
            post_callback=self._on_jump)

    def _on_jump(self, jump: TimeJump) -> None:
        is_change = jump.clock_change in (
            ClockChange.ROS_TIME_ACTIVATED, ClockChange.ROS_TIME_DEACTIVATED)
        now = self.now()
        for sleeper, until in list(self._sleepers.items()):
            if sleeper.done():
                continue
            if is_change:
                sleeper.set_exception(TimeSourceChangedError())
            elif until is not None and now >= until:
                sleeper.set_result(None)

    def _destroy(self) -> None:
        """Cancel all sleeps."""
        if self._is_destroyed:
            return
        self._is_destroyed = True
        self._jumps.unregister()
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
        until: Optional[Time] = None
        alarm: Optional[asyncio.TimerHandle] = None
        if self.ros_time_is_active:
            until = self.now() + duration
        else:
            alarm = loop.call_later(duration_sec, _wake, sleeper)
        self._sleepers[sleeper] = until
        try:
            await sleeper
        finally:
            del self._sleepers[sleeper]
            if alarm is not None:
                alarm.cancel()


def _wake(sleeper: asyncio.Future) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
