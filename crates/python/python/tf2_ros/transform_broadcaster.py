"""Publishes transforms on ``/tf``."""

from __future__ import annotations

from rclpy.qos import QoSProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from geometry_msgs.msg import TransformStamped
    from rclpy.node import Node


class TransformBroadcaster:
    """Publishes transforms that change."""

    def __init__(self, node: Node, qos: Optional[Union[QoSProfile, int]] = None) -> None:
        """
        Create the publisher.

        :param qos: Its policies; ``None`` stands for a depth of 100.
        """
        from tf2_msgs.msg import TFMessage
        if qos is None:
            qos = QoSProfile(depth=100)
        self.pub_tf = node.create_publisher(TFMessage, '/tf', qos)

    def sendTransform(self, transform: Union[TransformStamped, List[TransformStamped]]) -> None:
        """Publish a transform, or a list of them in one message."""
        from tf2_msgs.msg import TFMessage
        transforms = list(transform) if hasattr(transform, '__iter__') else [transform]
        self.pub_tf.publish(TFMessage(transforms=transforms))
