"""The service that describes the types of a node's topics and services."""

from __future__ import annotations

import weakref

from pteros import _native
from rclpy._imported_names import getter_of
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.parameter import Parameter
from rclpy.validate_topic_name import TOPIC_SEPARATOR_STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)

START_TYPE_DESCRIPTION_SERVICE_PARAM = 'start_type_description_service'


class TypeDescriptionService:
    """
    Serves ``~/get_type_description``.

    The parameter ``start_type_description_service`` switches it off.
    """

    def __init__(self, node: Node) -> None:
        """Create the service in the node, unless the parameter forbids it."""
        self._node_weak_ref = weakref.ref(node)
        self._service: Any = None
        if not node.has_parameter(START_TYPE_DESCRIPTION_SERVICE_PARAM):
            node.declare_parameter(
                START_TYPE_DESCRIPTION_SERVICE_PARAM, True,
                ParameterDescriptor(
                    description='If enabled, start the ~/get_type_description service.',
                    read_only=True))
        enabled = node.get_parameter(START_TYPE_DESCRIPTION_SERVICE_PARAM)
        if enabled.type_ is not Parameter.Type.BOOL:
            node.get_logger().error(
                f"Invalid type for parameter '{START_TYPE_DESCRIPTION_SERVICE_PARAM}' "
                f'{enabled.type_!r} should be bool')
        elif enabled.value:
            from type_description_interfaces.srv import GetTypeDescription
            self._service = node.create_service(
                GetTypeDescription,
                TOPIC_SEPARATOR_STRING.join((node.get_name(), 'get_type_description')),
                self._service_callback)

    def destroy(self) -> None:
        """Destroy the service."""
        node = self._node_weak_ref()
        service, self._service = self._service, None
        if service is not None and node is not None:
            node.destroy_service(service)

    def _service_callback(self, request: Any, response: Any) -> Any:
        node = self._node_weak_ref()
        if node is None:
            raise ReferenceError('Expected valid node weak reference')
        return _native.get_type_description(
            node.handle, request.type_name, request.type_hash, request.include_type_sources)
