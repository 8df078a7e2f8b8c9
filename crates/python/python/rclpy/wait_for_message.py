"""Waiting for one message of a topic."""

from __future__ import annotations

import time

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.utilities import timeout_sec_to_nsec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple, Union

    from rclpy.node import Node
    from rclpy.qos import QoSProfile
else:
    __getattr__ = getter_of(__name__)


def wait_for_message(
    msg_type: Any, node: Node, topic: str, *, qos_profile: Union[QoSProfile, int] = 1,
    time_to_wait: Union[float, int] = -1,
) -> Tuple[bool, Any]:
    """
    Wait for the next message of a topic. The node need not be spun.

    :param msg_type: The message class.
    :param node: The node that subscribes meanwhile.
    :param topic: The topic.
    :param qos_profile: The policies, or the number of messages to keep.
    :param time_to_wait: Longest wait in seconds; negative numbers stand for "for ever".
    :returns: whether a message came, and the message.
    """
    context = node.context
    poller = _native.Poller(context._require_handle())
    subscription = node.create_subscription(
        msg_type, topic, lambda _: None, qos_profile=qos_profile)
    try:
        poller.add(subscription.handle)
        wait = timeout_sec_to_nsec(time_to_wait)
        end = None if wait is None or wait < 0 else time.monotonic_ns() + wait
        while subscription.handle in poller.wait(wait):
            taken = subscription.handle.take()
            if taken is not None:
                return True, taken[0]
            # What had come was not of the type, and was dropped.
            if end is not None:
                wait = max(0, end - time.monotonic_ns())
        return False, None
    finally:
        poller.close()
        node.destroy_subscription(subscription)
