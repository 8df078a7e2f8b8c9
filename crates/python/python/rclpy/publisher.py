"""Publishers of topics."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.duration import Duration
from rclpy.impl.node_entity import NodeEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Union

    from pteros import _native
    from rclpy.callback_groups import CallbackGroup
    from rclpy.event_handler import EventHandler, PublisherEventCallbacks
    from rclpy.qos import QoSProfile
else:
    __getattr__ = getter_of(__name__)


class Publisher(NodeEntity):
    """Publishes messages of one type on one topic. All methods are thread-safe."""

    def __init__(
        self, publisher_impl: _native.Publisher, msg_type: Any, topic: str,
        qos_profile: QoSProfile, event_callbacks: PublisherEventCallbacks,
        callback_group: CallbackGroup,
    ) -> None:
        """Create a publisher; use :meth:`rclpy.node.Node.create_publisher`."""
        self.__publisher = publisher_impl
        self.msg_type = msg_type
        self.topic = topic
        self.qos_profile = qos_profile
        # The bound methods save two look-ups per message.
        self._publish = publisher_impl.publish
        self.event_handlers: List[EventHandler] = event_callbacks.create_event_handlers(
            callback_group, publisher_impl, topic)

    def publish(self, msg: Union[Any, bytes]) -> None:
        """
        Publish a message.

        :param msg: A message of the publisher's type, or a serialized one: ``bytes``, or
            any other buffer of CDR with its header.
        :raises TypeError: if it is of another type.
        :raises RCLError: if the context is shut down.
        :raises InvalidHandle: if the publisher was destroyed.
        """
        if isinstance(msg, self.msg_type):
            self._publish(msg)
        elif isinstance(msg, (bytes, bytearray, memoryview)):
            self.__publisher.publish_raw(msg)
        else:
            raise TypeError(
                f'Expected {self.msg_type}, got {type(msg)} on topic {self.topic!r}')

    def get_subscription_count(self) -> int:
        """Return how many subscriptions are matched."""
        return self.__publisher.get_subscription_count()

    @property
    def topic_name(self) -> str:
        """The full name of the topic, remapped."""
        return self.__publisher.get_topic_name()

    @property
    def handle(self) -> _native.Publisher:
        """The handle of the implementation."""
        return self.__publisher

    def destroy(self) -> None:
        """Destroy the publisher; use ``Node.destroy_publisher``."""
        for handler in self.event_handlers:
            handler.destroy()
        self.__publisher.destroy_when_not_in_use()

    def assert_liveliness(self) -> None:
        """Show that the publisher is alive, with the liveliness manual by topic."""
        self.__publisher.assert_liveliness()

    def wait_for_all_acked(self, timeout: Duration = Duration(seconds=-1)) -> bool:
        """
        Wait until all matched reliable subscriptions have acknowledged all messages.

        :param timeout: Negative stands for "for ever".
        :returns: ``False`` on time-out.
        """
        return self.__publisher.wait_for_all_acked(timeout.nanoseconds)
