"""Publishers of asynchronous nodes."""

from rclpy.experimental._async_entity import AsyncEntity
from rclpy.publisher import Publisher


class AsyncPublisher(AsyncEntity, Publisher):
    """Publishes messages of one type on one topic. `publish` does not wait."""
