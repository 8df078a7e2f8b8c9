"""Subscriptions of asynchronous nodes."""

from rclpy.experimental._async_entity import AsyncEntity
from rclpy.subscription import Subscription


class AsyncSubscription(AsyncEntity, Subscription):
    """Calls back for each message of one topic; the callback may be a coroutine function."""
