"""Asynchronous node: a node that runs in the event loop of asyncio, without an executor."""

from __future__ import annotations

import asyncio

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.experimental._async_turns import AsyncTurns
from rclpy.experimental.async_client import AsyncClient
from rclpy.experimental.async_clock import AsyncClock
from rclpy.experimental.async_publisher import AsyncPublisher
from rclpy.experimental.async_service import AsyncService
from rclpy.experimental.async_subscription import AsyncSubscription
from rclpy.experimental.async_timer import AsyncTimer
from rclpy.node import Node
from rclpy.qos import qos_profile_services_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn, Optional, Type, Union

    from rclpy.callback_groups import CallbackGroup
    from rclpy.qos import QoSProfile


class AsyncNode(Node):
    """
    A node whose callbacks run in the event loop of asyncio.

    It came with ROS 2 Lyrical, where it is experimental. Callbacks may be plain functions, or
    coroutine functions that await anything of asyncio::

        async with AsyncNode('listener') as node:
            node.create_subscription(String, 'chatter', callback, 10)
            await something()

    The callbacks run between the beginning and the end of the block. The end destroys the node.
    An exception of a callback cancels the block, which then raises an ``ExceptionGroup`` with it.
    So does the shutdown of the context: the exception is an ``ExternalShutdownException``.

    Everything belongs to the thread of the loop, except the methods of publishers.
    """

    _clock_class = AsyncClock
    _subscription_class = AsyncSubscription
    _client_class = AsyncClient
    _service_class = AsyncService
    _timer_class = AsyncTimer

    def __init__(self, node_name: str, **options: Any) -> None:
        """
        Create a node; the parameters are those of :class:`rclpy.node.Node`.

        :raises NotInitializedException: if the context is not initialized or is shut down.
        :raises InvalidNodeNameException: if the name is invalid.
        :raises InvalidNamespaceException: if the namespace is invalid.
        """
        self._destroyed = asyncio.Event()
        self._tasks: Optional[asyncio.TaskGroup] = None
        self._turns: Optional[AsyncTurns] = None
        super().__init__(node_name, **options)

    # --- running

    async def __aenter__(self) -> AsyncNode:
        if self._destroyed.is_set():
            raise RuntimeError('Node has been destroyed and cannot be reentered')
        if self._tasks is not None:
            raise RuntimeError('Node is already running')
        tasks = asyncio.TaskGroup()
        self._tasks = await tasks.__aenter__()
        self._turns = AsyncTurns(self.context, tasks)
        self._turns.add_node(self)
        self._turns.start()
        return self

    async def __aexit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        tasks = self._tasks
        self.destroy_node()
        try:
            if tasks is not None:
                await tasks.__aexit__(exc_type, exc_val, exc_tb)
        finally:
            self._tasks = None

    async def run(self) -> None:
        """
        Run callbacks until :meth:`destroy_node` is called.

        :raises RuntimeError: if the node runs already, or was destroyed.
        :raises ExceptionGroup: that of callbacks, or of the context's shutdown.
        """
        async with self:
            await self._destroyed.wait()

    def destroy_node(self) -> None:
        """Destroy the node, and cancel its callbacks that wait. Once is enough."""
        if self._destroyed.is_set():
            return
        self._destroyed.set()
        if self._turns is not None:
            self._turns.stop()
        super().destroy_node()
        self._clock._destroy()  # type: ignore[attr-defined]

    def _release(self, entity: Any) -> None:
        """Remove an entity that is being destroyed."""
        with self._entities_lock:
            for entities in (
                    self._publishers, self._subscriptions, self._clients, self._services,
                    self._timers):
                entities[:] = [each for each in entities if each is not entity]
            handlers = getattr(entity, 'event_handlers', ())
            self._waitables[:] = [each for each in self._waitables if each not in handlers]
        if self._turns is not None:
            self._turns.cancel(entity)
        self._entities_changed()

    def _own(self, entity: Any) -> Any:
        entity._owner = self
        return entity

    def _check_not_destroyed(self, what: str) -> None:
        if self._destroyed.is_set():
            raise RuntimeError(f'Cannot create {what} on a destroyed node')

    async def wait_for_node(  # type: ignore[override]
        self, fully_qualified_node_name: str, *, check_interval: float = 0.1,
    ) -> None:
        """
        Wait until a node is in the graph; ``asyncio.timeout`` limits the wait.

        :param fully_qualified_node_name: Its namespace and name.
        :param check_interval: Seconds between two looks.
        """
        if not fully_qualified_node_name.startswith('/'):
            fully_qualified_node_name = f'/{fully_qualified_node_name}'
        while fully_qualified_node_name not in self.get_fully_qualified_node_names():
            await asyncio.sleep(check_interval)

    # --- creating

    def create_publisher(  # type: ignore[override]
        self, msg_type: Any, topic: str, qos_profile: Union[QoSProfile, int], **options: Any,
    ) -> AsyncPublisher:
        """
        Create a publisher; the parameters are those of :class:`rclpy.node.Node`.

        :raises RuntimeError: if the node was destroyed.
        """
        self._check_not_destroyed('publisher')
        options.setdefault('publisher_class', AsyncPublisher)
        return self._own(super().create_publisher(msg_type, topic, qos_profile, **options))

    def create_subscription(  # type: ignore[override]
        self, msg_type: Any, topic: str, callback: Callable[..., Any],
        qos_profile: Union[QoSProfile, int], *, raw: bool = False, concurrent: bool = False,
        content_filter_options: Any = None, **options: Any,
    ) -> AsyncSubscription:
        """
        Create a subscription; the parameters are also those of :class:`rclpy.node.Node`.

        :param concurrent: Take each message at once, so that coroutines of several messages
            run. Otherwise the next message is taken when the callback has ended.
        :raises RuntimeError: if the node was destroyed.
        """
        self._check_not_destroyed('subscription')
        options.setdefault('callback_group', _group(concurrent))
        return self._own(super().create_subscription(
            msg_type, topic, callback, qos_profile, raw=raw,
            content_filter_options=content_filter_options, **options))

    def create_client(  # type: ignore[override]
        self, srv_type: Any, srv_name: str, *,
        qos_profile: QoSProfile = qos_profile_services_default, **options: Any,
    ) -> AsyncClient:
        """
        Create a client of a service; the parameters are those of :class:`rclpy.node.Node`.

        :raises RuntimeError: if the node was destroyed.
        """
        self._check_not_destroyed('client')
        options.setdefault('callback_group', _group(True))
        return self._own(super().create_client(
            srv_type, srv_name, qos_profile=qos_profile, **options))

    def create_service(  # type: ignore[override]
        self, srv_type: Any, srv_name: str, callback: Callable[[Any, Any], Any], *,
        qos_profile: QoSProfile = qos_profile_services_default, concurrent: bool = False,
        **options: Any,
    ) -> AsyncService:
        """
        Create a server of a service; the parameters are also those of `rclpy.node.Node`.

        :param concurrent: Take each request at once, so that coroutines of several requests
            run. Otherwise the next request is taken when the callback has ended.
        :raises RuntimeError: if the node was destroyed.
        """
        self._check_not_destroyed('service')
        options.setdefault('callback_group', _group(concurrent))
        return self._own(super().create_service(
            srv_type, srv_name, callback, qos_profile=qos_profile, **options))

    def create_timer(  # type: ignore[override]
        self, timer_period_sec: float, callback: Optional[Callable[[], Any]],
        autostart: bool = True,
    ) -> AsyncTimer:
        """
        Create a timer of the node's clock. A period that ends during a callback is skipped.

        :param timer_period_sec: The period in seconds.
        :param callback: Called once a period.
        :param autostart: Start now, not at the first ``reset``.
        :raises RuntimeError: if the node was destroyed.
        """
        self._check_not_destroyed('timer')
        return self._own(super().create_timer(
            timer_period_sec, callback, _group(False), autostart=autostart))

    def create_rate(self, frequency: float, clock: Any = None) -> NoReturn:
        """
        Refuse a rate, whose sleep would block the loop.

        :raises RuntimeError: always; use ``await node.get_clock().sleep()``.
        """
        raise RuntimeError(
            f'a rate of {frequency} Hz would block the event loop: use a timer, or '
            'await node.get_clock().sleep()')


def _group(is_concurrent: bool) -> CallbackGroup:
    group: Type[CallbackGroup] = (
        ReentrantCallbackGroup if is_concurrent else MutuallyExclusiveCallbackGroup)
    return group()
