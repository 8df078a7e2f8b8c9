"""Fills a buffer from ``/tf`` and ``/tf_static``."""

from __future__ import annotations

import threading

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Union

    from rclpy.node import Node
    from tf2_ros.buffer import Buffer

DEFAULT_TF_TOPIC = '/tf'
DEFAULT_STATIC_TF_TOPIC = '/tf_static'


class TransformListener:
    """Subscribes to transforms and puts them into a buffer."""

    def __init__(
        self, buffer: Buffer, node: Node, *, spin_thread: bool = False,
        qos: Optional[Union[QoSProfile, int]] = None,
        static_qos: Optional[Union[QoSProfile, int]] = None,
    ) -> None:
        """
        Subscribe to transforms.

        :param buffer: The buffer.
        :param node: The node of the subscriptions.
        :param spin_thread: Spin the node in a thread of its own.
        :param qos: The policies of ``/tf``.
        :param static_qos: The policies of ``/tf_static``.
        """
        if qos is None:
            qos = QoSProfile(
                depth=100, durability=DurabilityPolicy.VOLATILE, history=HistoryPolicy.KEEP_LAST)
        if static_qos is None:
            static_qos = QoSProfile(
                depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL,
                history=HistoryPolicy.KEEP_LAST)
        from tf2_msgs.msg import TFMessage
        self.buffer = buffer
        self.node = node
        # Callbacks that wait for transforms must not keep these from running.
        self.group = ReentrantCallbackGroup()
        self.tf_sub = node.create_subscription(
            TFMessage, DEFAULT_TF_TOPIC, self.callback, qos, callback_group=self.group)
        self.tf_static_sub = node.create_subscription(
            TFMessage, DEFAULT_STATIC_TF_TOPIC, self.static_callback, static_qos,
            callback_group=self.group)
        self.executor: Any = None
        if spin_thread:
            from rclpy.executors import SingleThreadedExecutor
            self.executor = SingleThreadedExecutor(context=node.context)
            self.executor.add_node(node)
            self.dedicated_listener_thread = threading.Thread(target=self._spin, daemon=True)
            self.dedicated_listener_thread.start()

    def _spin(self) -> None:
        from rclpy.executors import ExternalShutdownException
        try:
            self.executor.spin()
        except ExternalShutdownException:
            # The program shuts down, and this thread with it.
            pass
        finally:
            self.executor.shutdown()

    def unregister(self) -> None:
        """Stop listening."""
        if self.executor is not None:
            self.executor.shutdown()
            if threading.current_thread() is not self.dedicated_listener_thread:
                self.dedicated_listener_thread.join()
        self.node.destroy_subscription(self.tf_sub)
        self.node.destroy_subscription(self.tf_static_sub)

    def callback(self, data: Any) -> None:
        """Put the transforms of a message into the buffer."""
        for transform in data.transforms:
            self.buffer.set_transform(transform, 'default_authority')

    def static_callback(self, data: Any) -> None:
        """Put the static transforms of a message into the buffer."""
        for transform in data.transforms:
            self.buffer.set_transform_static(transform, 'default_authority')
