"""The services through which others read and set a node's parameters."""

from __future__ import annotations

import weakref
from functools import partial

from rcl_interfaces.srv import (
    DescribeParameters, GetParameters, GetParameterTypes, ListParameters, SetParameters,
    SetParametersAtomically,
)
from rclpy._imported_names import getter_of
from rclpy.qos import qos_profile_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)


class ParameterService:
    """Serves the parameters of a node."""

    def __init__(self, node: Node) -> None:
        """Create the services in the node."""
        self._node_weak_ref = weakref.ref(node)
        name = node.get_name()
        for service_type, service in (
                (DescribeParameters, 'describe_parameters'), (GetParameters, 'get_parameters'),
                (GetParameterTypes, 'get_parameter_types'), (ListParameters, 'list_parameters'),
                (SetParameters, 'set_parameters'),
                (SetParametersAtomically, 'set_parameters_atomically')):
            node.create_service(
                service_type, f'{name}/{service}', partial(self._answer, service),
                qos_profile=qos_profile_parameters)

    def _answer(self, service: str, request: Any, response: Any) -> Any:
        node = self._node_weak_ref()
        if node is None:
            raise ReferenceError('Expected valid node weak reference')
        return node._parameter_store.answer(node, service, request, type(response))
