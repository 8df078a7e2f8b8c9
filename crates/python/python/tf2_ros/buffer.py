"""The transform buffer of a node."""

from __future__ import annotations

import threading
import time as system_time

from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.task import Future
from tf2_py import (
    BufferCore, ConnectivityException, ExtrapolationException, LookupException,
)
from tf2_ros.buffer_interface import BufferInterface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple, Union

    from geometry_msgs.msg import TransformStamped
    from rclpy.node import Node
    from rclpy.time import Time

_NOT_YET = (ConnectivityException, ExtrapolationException, LookupException)
"""Failures that later transforms may mend."""


class Buffer(BufferCore, BufferInterface):
    """
    Keeps transforms, and waits for those that are not there yet.

    A look-up with a time-out blocks. Another thread must fill the buffer meanwhile, such as
    the one of ``TransformListener(spin_thread=True)``.
    """

    def __init__(self, cache_time: Optional[Duration] = None, node: Optional[Node] = None) -> None:
        """
        Create an empty buffer.

        :param cache_time: The history of each transform; ``None`` stands for 10 s.
        :param node: A node that serves the frames as YAML (``tf2_frames``), and whose clock
            empties the buffer when it jumps back.
        """
        BufferCore.__init__(self, cache_time)
        BufferInterface.__init__(self)
        self._new_data_callbacks: List[Callable[[], Any]] = []
        self._callbacks_lock = threading.RLock()
        self._changed = threading.Condition()
        self._version = 0
        self.node = node
        if node is not None:
            from tf2_msgs.srv import FrameGraph
            self.srv = node.create_service(FrameGraph, 'tf2_frames', self.__get_frames)
            self.clock = node.get_clock()
            self.jump_handle = self.clock.create_jump_callback(
                JumpThreshold(
                    min_forward=None, min_backward=Duration(nanoseconds=-1),
                    on_clock_change=True),
                post_callback=self.time_jump_callback)

    def __get_frames(self, request: Any, response: Any) -> Any:
        response.frame_yaml = self.all_frames_as_yaml()
        return response

    def time_jump_callback(self, time_jump: TimeJump) -> None:
        """Empty the buffer when the time has jumped back."""
        if time_jump.delta.nanoseconds < 0:
            if self.node is not None:
                self.node.get_logger().warning(
                    'Detected jump back in time. Clearing tf buffer.')
            self.clear()

    # --- setting

    def set_transform(self, transform: TransformStamped, authority: str) -> None:
        """Add a transform; see :meth:`tf2_py.BufferCore.set_transform`."""
        super().set_transform(transform, authority)
        self._call_new_data_callbacks()

    def set_transform_static(self, transform: TransformStamped, authority: str) -> None:
        """Add a static transform; see :meth:`tf2_py.BufferCore.set_transform_static`."""
        super().set_transform_static(transform, authority)
        self._call_new_data_callbacks()

    def _call_new_data_callbacks(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()
        if self._new_data_callbacks:
            with self._callbacks_lock:
                for callback in list(self._new_data_callbacks):
                    callback()

    def _remove_callback(self, callback: Callable[[], Any]) -> None:
        with self._callbacks_lock:
            try:
                self._new_data_callbacks.remove(callback)
            except ValueError:
                # It has removed itself.
                pass

    # --- looking up

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
    ) -> TransformStamped:
        """
        Return the transform from a source frame to a target frame.

        :param time: The time; 0 stands for the latest one that all transforms have.
        :param timeout: Longest wait for the transform.
        :raises: as :meth:`tf2_py.BufferCore.lookup_transform_core`.
        """
        self.can_transform(target_frame, source_frame, time, timeout)
        return self.lookup_transform_core(target_frame, source_frame, time)

    def lookup_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(),
    ) -> TransformStamped:
        """
        Return the transform from a source frame at one time to a target frame at another one.

        :param fixed_frame: A frame that does not move between the times.
        :param timeout: Longest wait for the transform.
        :raises: as :meth:`tf2_py.BufferCore.lookup_transform_core`.
        """
        self.can_transform_full(
            target_frame, target_time, source_frame, source_time, fixed_frame, timeout)
        return self.lookup_transform_full_core(
            target_frame, target_time, source_frame, source_time, fixed_frame)

    async def lookup_transform_async(
        self, target_frame: str, source_frame: str, time: Time,
    ) -> TransformStamped:
        """Wait for a transform, as a coroutine, and return it."""
        await self.wait_for_transform_async(target_frame, source_frame, time)
        return self.lookup_transform_core(target_frame, source_frame, time)

    async def lookup_transform_full_async(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str,
    ) -> TransformStamped:
        """Wait for a transform between two times, as a coroutine, and return it."""
        await self.wait_for_transform_full_async(
            target_frame, target_time, source_frame, source_time, fixed_frame)
        return self.lookup_transform_full_core(
            target_frame, target_time, source_frame, source_time, fixed_frame)

    def can_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
        return_debug_tuple: bool = False,
    ) -> Union[bool, Tuple[bool, str]]:
        """
        Return whether a look-up would succeed.

        :param timeout: Longest wait until it would.
        :param return_debug_tuple: Return the reason of a failure as well.
        """
        return self._wait(
            lambda: self.can_transform_core(target_frame, source_frame, time), timeout,
            return_debug_tuple)

    def can_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(), return_debug_tuple: bool = False,
    ) -> Union[bool, Tuple[bool, str]]:
        """
        Return whether a look-up between two times would succeed.

        :param timeout: Longest wait until it would.
        :param return_debug_tuple: Return the reason of a failure as well.
        """
        return self._wait(
            lambda: self.can_transform_full_core(
                target_frame, target_time, source_frame, source_time, fixed_frame),
            timeout, return_debug_tuple)

    def _wait(
        self, check: Callable[[], Tuple[bool, str]], timeout: Duration, return_debug_tuple: bool,
    ) -> Union[bool, Tuple[bool, str]]:
        result = check()
        if not result[0] and timeout.nanoseconds > 0:
            deadline = system_time.monotonic() + timeout.nanoseconds / 1e9
            context = self.node.context if self.node is not None else None
            while not result[0] and (context is None or context.ok()):
                left = deadline - system_time.monotonic()
                if left <= 0:
                    break
                with self._changed:
                    version = self._version
                # A transform may have come between the look-up and the version.
                result = check()
                if result[0]:
                    break
                with self._changed:
                    # A context that is shut down does not wake this thread.
                    self._changed.wait_for(
                        lambda: self._version != version, min(left, 0.1))  # noqa: B023
        return result if return_debug_tuple else result[0]

    def wait_for_transform_async(
        self, target_frame: str, source_frame: str, time: Time,
    ) -> Future:
        """Return a future of the transform, which is done when a look-up succeeds."""
        return self._future(
            lambda: self.can_transform_core(target_frame, source_frame, time)[0],
            lambda: self.lookup_transform_core(target_frame, source_frame, time))

    def wait_for_transform_full_async(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str,
    ) -> Future:
        """Return a future of the transform between two times, done when a look-up succeeds."""
        return self._future(
            lambda: self.can_transform_full_core(
                target_frame, target_time, source_frame, source_time, fixed_frame)[0],
            lambda: self.lookup_transform_full_core(
                target_frame, target_time, source_frame, source_time, fixed_frame))

    def _future(
        self, check: Callable[[], bool], look_up: Callable[[], TransformStamped],
    ) -> Future:
        future = Future()

        def on_new_data() -> None:
            if not future.done() and check():
                self._remove_callback(on_new_data)
                try:
                    future.set_result(look_up())
                except TransformException as error:
                    # Another thread has cleared the buffer.
                    future.set_exception(error)

        with self._callbacks_lock:
            if check():
                future.set_result(look_up())
                return future
            self._new_data_callbacks.append(on_new_data)
        future._add_waker(lambda: self._remove_callback(on_new_data))
        return future
