"""Clients of services."""

from __future__ import annotations

import threading
import time

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.exceptions import ROSInterruptException
from rclpy.impl.node_entity import NodeEntity
from rclpy.task import Future
from rclpy.timer import SHUTDOWN_POLL_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from rclpy.callback_groups import CallbackGroup
    from rclpy.clock import Clock
    from rclpy.context import Context
    from rclpy.qos import QoSProfile
    from rclpy.service_introspection import ServiceIntrospectionState
else:
    __getattr__ = getter_of(__name__)

_SERVER_POLL_S = 0.02
"""Time between two looks for a server. Discovery itself takes longer."""


class Client(NodeEntity):
    """Sends requests to a service."""

    def __init__(
        self, context: Context, client_impl: _native.Client, srv_type: Any, srv_name: str,
        qos_profile: QoSProfile, callback_group: CallbackGroup,
    ) -> None:
        """Create a client; use :meth:`rclpy.node.Node.create_client`."""
        self.context = context
        self.__client = client_impl
        self.srv_type = srv_type
        self.srv_name = srv_name
        self.qos_profile = qos_profile
        self._pending_requests: Dict[int, Future] = {}
        self.callback_group = callback_group
        self._executor_event = False
        self._lock = threading.Lock()

    def call(self, request: Any, timeout_sec: Optional[float] = None) -> Optional[Any]:
        """
        Send a request and wait for the response. Another thread must spin the node.

        It never returns in a callback of the only thread that spins.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :returns: the response, or ``None`` on time-out.
        :raises TypeError: if the request is not of the service's type.
        :raises ROSInterruptException: if the context is shut down.
        """
        if not isinstance(request, self.srv_type.Request):
            raise TypeError(
                f'expected a request of type {self.srv_type.Request}, got {type(request)}')
        event = threading.Event()
        future = self.call_async(request)
        # A waker, unlike a done callback, does not wait for a turn of the executor.
        if future._add_waker(event.set):
            try:
                if not self._wait(event, timeout_sec):
                    return None
            finally:
                self.remove_pending_request(future)
        exception = future.exception()
        if exception is not None:
            raise exception
        return future.result()

    def _wait(self, event: threading.Event, timeout_sec: Optional[float]) -> bool:
        """Wait for an event; ``False`` on time-out."""
        deadline = None
        if timeout_sec is not None and timeout_sec >= 0:
            deadline = time.monotonic() + timeout_sec
        pause = SHUTDOWN_POLL_S
        while True:
            if deadline is not None:
                pause = max(min(SHUTDOWN_POLL_S, deadline - time.monotonic()), 0.0)
            if event.wait(pause):
                return True
            if not self.context.ok():
                raise ROSInterruptException()
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def call_async(self, request: Any) -> Future:
        """
        Send a request.

        :returns: a future of the response.
        :raises TypeError: if the request is not of the service's type.
        """
        if not isinstance(request, self.srv_type.Request):
            raise TypeError(
                f'expected a request of type {self.srv_type.Request}, got {type(request)}')
        # The lock keeps a response from overtaking the registration of its request.
        with self._lock:
            sequence_number = self.__client.send_request(request)
            if sequence_number in self._pending_requests:
                raise RuntimeError(
                    f'Sequence ({sequence_number}) conflicts with pending request')
            future = Future()
            self._pending_requests[sequence_number] = future
        future._add_waker(lambda: self._forget(sequence_number, future))
        return future

    def _forget(self, sequence_number: int, future: Future) -> None:
        """Forget a request whose future is done or cancelled."""
        with self._lock:
            if self._pending_requests.pop(sequence_number, None) is None:
                return
        if not future.done():
            try:
                self.__client.forget_request(sequence_number)
            except RuntimeError:
                # The client is destroyed, and its requests with it.
                pass

    def get_pending_request(self, sequence_number: int) -> Future:
        """
        Return the future of a request.

        :raises KeyError: if it is not pending.
        """
        return self._pending_requests[sequence_number]

    def remove_pending_request(self, future: Future) -> None:
        """Forget a request; a response to it will be dropped."""
        with self._lock:
            for sequence_number, pending in self._pending_requests.items():
                if pending is future:
                    break
            else:
                return
        self._forget(sequence_number, future)

    def service_is_ready(self) -> bool:
        """
        Return whether a server is there.

        :raises RCLError: if the context is shut down.
        """
        return self.__client.service_server_is_available()

    def wait_for_service(self, timeout_sec: Optional[float] = None) -> bool:
        """
        Wait until a server is there.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :returns: whether one is there.
        :raises RCLError: if the context is shut down.
        """
        deadline = None
        if timeout_sec is not None and timeout_sec >= 0:
            deadline = time.monotonic() + timeout_sec
        while self.context.ok() and not self.service_is_ready():
            pause = _SERVER_POLL_S
            if deadline is not None:
                pause = min(pause, deadline - time.monotonic())
                if pause <= 0:
                    break
            time.sleep(pause)
        return self.service_is_ready()

    def configure_introspection(
        self, clock: Clock, service_event_qos_profile: QoSProfile,
        introspection_state: ServiceIntrospectionState,
    ) -> None:
        """Publish events of the client's calls on ``<service>/_service_event``, or stop it."""
        self.__client.configure_introspection(
            clock.handle, _native.rmw_qos_profile_t(*service_event_qos_profile._native()),
            int(introspection_state))

    @property
    def handle(self) -> _native.Client:
        """The handle of the implementation."""
        return self.__client

    @property
    def service_name(self) -> str:
        """The full name of the service, remapped."""
        return self.__client.get_service_name()

    def destroy(self) -> None:
        """Destroy the client; use ``Node.destroy_client``."""
        self.__client.destroy_when_not_in_use()

    def _executor_take(self, executor: Any) -> Any:
        taken = self.__client.take_response()
        if taken is None:
            return None
        header, response = taken
        with self._lock:
            future = self._pending_requests.get(header.sequence_number)
        if future is None:
            # The request was removed; its response goes nowhere.
            return None
        future._set_executor(executor)
        return future, response

    def _executor_call(self, future: Future, response: Any) -> Any:
        future.set_result(response)
