"""A buffer in another process, through the action ``LookupTransform``."""

from __future__ import annotations

import time as system_time

from rclpy.action import ActionClient
from rclpy.duration import Duration
from tf2_py import (
    ConnectivityException, ExtrapolationException, InvalidArgumentException, LookupException,
    TimeoutException, TransformException,
)
from tf2_ros.buffer_interface import BufferInterface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.node import Node
    from rclpy.time import Time


class BufferClient(BufferInterface):
    """Looks transforms up in a buffer server. Another thread must spin the node."""

    def __init__(
        self, node: Node, ns: str, check_frequency: float = 10.0,
        timeout_padding: Duration = Duration(seconds=2.0),
    ) -> None:
        """
        Create a client.

        :param ns: The name of the server's action.
        :param check_frequency: Kept for compatibility: results are waited for, not polled.
        :param timeout_padding: Time for the communication, beyond the time-out of a look-up.
        """
        super().__init__()
        from tf2_msgs.action import LookupTransform
        self.node = node
        self.action_client = ActionClient(node, LookupTransform, ns)
        self.check_frequency = check_frequency
        self.timeout_padding = timeout_padding

    def destroy(self) -> None:
        """Destroy the action client."""
        self.action_client.destroy()

    def wait_for_server(self, timeout: Duration = Duration()) -> bool:
        """Wait until the server is there."""
        return self.action_client.wait_for_server(timeout.nanoseconds / 1e9)

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
    ) -> Any:
        """
        Return the transform from a source frame to a target frame.

        :raises: as :meth:`tf2_py.BufferCore.lookup_transform_core`, and ``TimeoutException``.
        """
        goal = self._goal(target_frame, source_frame, time, timeout)
        return self._process_goal(goal)

    def lookup_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(),
    ) -> Any:
        """Return the transform between frames at two times; see :meth:`lookup_transform`."""
        goal = self._goal(target_frame, source_frame, source_time, timeout)
        goal.target_time = target_time.to_msg()
        goal.fixed_frame = fixed_frame
        goal.advanced = True
        return self._process_goal(goal)

    def can_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
    ) -> bool:
        """Return whether a look-up succeeds."""
        try:
            self.lookup_transform(target_frame, source_frame, time, timeout)
        except TransformException:
            return False
        return True

    def can_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(),
    ) -> bool:
        """Return whether a look-up between two times succeeds."""
        try:
            self.lookup_transform_full(
                target_frame, target_time, source_frame, source_time, fixed_frame, timeout)
        except TransformException:
            return False
        return True

    def _goal(self, target_frame: str, source_frame: str, time: Time, timeout: Duration) -> Any:
        from tf2_msgs.action import LookupTransform
        goal = LookupTransform.Goal()
        goal.target_frame = target_frame
        goal.source_frame = source_frame
        goal.source_time = time.to_msg()
        goal.timeout = timeout.to_msg()
        goal.advanced = False
        return goal

    def _process_goal(self, goal: Any) -> Any:
        limit_ns = Duration.from_msg(goal.timeout).nanoseconds + self.timeout_padding.nanoseconds
        deadline = system_time.monotonic() + limit_ns / 1e9
        sent = self._wait(self.action_client.send_goal_async(goal), deadline)
        if not sent.accepted:
            raise TransformException(
                f'the buffer server {self.action_client._action_name!r} rejected the look-up')
        try:
            response = self._wait(sent.get_result_async(), deadline)
        except TimeoutException:
            sent.cancel_goal_async()
            raise
        return self._process_result(response.result)

    def _wait(self, future: Any, deadline: float) -> Any:
        import threading
        event = threading.Event()
        if future._add_waker(event.set) and not event.wait(
                max(deadline - system_time.monotonic(), 0.0)):
            raise TimeoutException(
                f'the buffer server {self.action_client._action_name!r} did not answer in time')
        return future.result()

    def _process_result(self, result: Any) -> Any:
        error = result.error
        kinds = {
            error.LOOKUP_ERROR: LookupException, error.CONNECTIVITY_ERROR: ConnectivityException,
            error.EXTRAPOLATION_ERROR: ExtrapolationException,
            error.INVALID_ARGUMENT_ERROR: InvalidArgumentException,
            error.TIMEOUT_ERROR: TimeoutException, error.TRANSFORM_ERROR: TransformException}
        if error.error != error.NO_ERROR:
            raise kinds.get(error.error, TransformException)(error.error_string)
        return result.transform
