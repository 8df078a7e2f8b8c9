"""Publishes static transforms on ``/tf_static``."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Union

    from geometry_msgs.msg import TransformStamped
    from rclpy.node import Node


class StaticTransformBroadcaster:
    """
    Publishes transforms that hold for all times.

    Late joiners get the last message, so each one has all transforms. A new transform of a
    child frame replaces the old one, as in C++.
    """

    def __init__(self, node: Node, qos: Optional[Union[QoSProfile, int]] = None) -> None:
        """
        Create the publisher.

        :param qos: Its policies; ``None`` stands for keep the last, transient local.
        """
        from tf2_msgs.msg import TFMessage
        if qos is None:
            qos = QoSProfile(
                depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL,
                history=HistoryPolicy.KEEP_LAST)
        self.pub_tf = node.create_publisher(TFMessage, '/tf_static', qos)
        self._by_child: Dict[str, TransformStamped] = {}

    def sendTransform(self, transform: Union[TransformStamped, List[TransformStamped]]) -> None:
        """Publish a transform or a list of them, with all earlier ones."""
        from tf2_msgs.msg import TFMessage
        for each in transform if hasattr(transform, '__iter__') else [transform]:
            self._by_child[each.child_frame_id] = each
        self.net_message = TFMessage(transforms=list(self._by_child.values()))
        self.pub_tf.publish(self.net_message)
