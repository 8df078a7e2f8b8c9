"""Servers of services."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl.node_entity import NodeEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from rclpy.callback_groups import CallbackGroup
    from rclpy.clock import Clock
    from rclpy.qos import QoSProfile
    from rclpy.service_introspection import ServiceIntrospectionState
else:
    __getattr__ = getter_of(__name__)


class Service(NodeEntity):
    """Answers the requests of a service by a callback."""

    def __init__(
        self, service_impl: _native.Service, srv_type: Any, srv_name: str,
        callback: Callable[[Any, Any], Any], callback_group: CallbackGroup,
        qos_profile: QoSProfile,
    ) -> None:
        """Create a server; use :meth:`rclpy.node.Node.create_service`."""
        self.__service = service_impl
        self.srv_type = srv_type
        self.srv_name = srv_name
        self.callback = callback
        self.callback_group = callback_group
        self._executor_event = False
        self.qos_profile = qos_profile

    def send_response(self, response: Any, header: Any) -> None:
        """
        Send the response to a request.

        :param response: A response of the service's type, or a serialized one.
        :param header: The header of the request.
        :raises TypeError: if ``response`` is of another type.
        """
        if not isinstance(response, (self.srv_type.Response, bytes)):
            raise TypeError(
                f'expected a response of type {self.srv_type.Response}, got {type(response)}; '
                f'the callback of service {self.srv_name!r} must return its response')
        if isinstance(response, bytes):
            from rclpy.serialization import deserialize_message
            response = deserialize_message(response, self.srv_type.Response)
        self.__service.send_response(response, header)

    def configure_introspection(
        self, clock: Clock, service_event_qos_profile: QoSProfile,
        introspection_state: ServiceIntrospectionState,
    ) -> None:
        """Publish events of the server's calls on ``<service>/_service_event``, or stop it."""
        self.__service.configure_introspection(
            clock.handle, _native.rmw_qos_profile_t(*service_event_qos_profile._native()),
            int(introspection_state))

    @property
    def handle(self) -> _native.Service:
        """The handle of the implementation."""
        return self.__service

    @property
    def service_name(self) -> str:
        """The full name of the service, remapped."""
        return self.__service.get_service_name()

    def destroy(self) -> None:
        """Destroy the server; use ``Node.destroy_service``."""
        self.__service.destroy_when_not_in_use()

    def _executor_take(self, executor: Any) -> Any:
        return self.__service.take_request()

    def _executor_call(self, request: Any, header: Any) -> Any:
        response = self.callback(request, self.srv_type.Response())
        if hasattr(response, '__await__') and hasattr(response, 'send'):
            return self._respond_later(response, header)
        self.send_response(response, header)
        return None

    async def _respond_later(self, response: Any, header: Any) -> None:
        self.send_response(await response, header)
