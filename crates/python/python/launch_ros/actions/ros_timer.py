"""Action: do something after a period of ROS time."""

from __future__ import annotations

import asyncio

from launch.actions import TimerAction
from launch.frontend.expose import expose_action

from launch_ros.ros_adapters import get_ros_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from launch.launch_context import LaunchContext


@expose_action('ros_timer')
class ROSTimer(TimerAction):
    """Visits actions after a period in seconds of ROS time."""

    CLOCK = ' of ROS time'

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__timer_future: Optional[asyncio.Future] = None

    def __on_timer(self) -> None:
        if not self.__timer_future.done():
            self.__timer_future.set_result(True)

    async def _wait_to_fire_event(self, context: LaunchContext) -> None:
        node = get_ros_node(context)
        loop = context.asyncio_loop
        timer = node.create_timer(
            self._perform_period(context), lambda: loop.call_soon_threadsafe(self.__on_timer))
        await asyncio.wait(
            [self._canceled_future, self.__timer_future], return_when=asyncio.FIRST_COMPLETED)
        if not self._canceled_future.done():
            # At the end of the launch the node is gone already.
            node.destroy_timer(timer)
        await self._finish(context)

    def execute(self, context: LaunchContext) -> None:
        """Start the timer."""
        if context.plan is None:
            self.__timer_future = context.asyncio_loop.create_future()
        super().execute(context)


RosTimer = ROSTimer
