"""The services through which others read and set a node's parameters."""

from __future__ import annotations

import weakref

from rcl_interfaces.msg import ListParametersResult, SetParametersResult
from rcl_interfaces.srv import (
    DescribeParameters, GetParameters, GetParameterTypes, ListParameters, SetParameters,
    SetParametersAtomically,
)
from rclpy._imported_names import getter_of
from rclpy.exceptions import ParameterNotDeclaredException, ParameterUninitializedException
from rclpy.parameter import Parameter
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
        for service_type, service, callback in (
                (DescribeParameters, 'describe_parameters', self._describe_parameters_callback),
                (GetParameters, 'get_parameters', self._get_parameters_callback),
                (GetParameterTypes, 'get_parameter_types', self._get_parameter_types_callback),
                (ListParameters, 'list_parameters', self._list_parameters_callback),
                (SetParameters, 'set_parameters', self._set_parameters_callback),
                (SetParametersAtomically, 'set_parameters_atomically',
                 self._set_parameters_atomically_callback)):
            node.create_service(
                service_type, f'{name}/{service}', callback, qos_profile=qos_profile_parameters)

    def _describe_parameters_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        try:
            response.descriptors = node.describe_parameters(list(request.names))
        except ParameterNotDeclaredException:
            # An empty response stands for an unknown name.
            response.descriptors = []
        return response

    def _get_parameters_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        try:
            response.values = [
                node.get_parameter(name).get_parameter_value() for name in request.names]
        except (ParameterNotDeclaredException, ParameterUninitializedException):
            response.values = []
        return response

    def _get_parameter_types_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        try:
            types = node.get_parameter_types(list(request.names))
        except ParameterNotDeclaredException:
            types = []
        response.types = [
            kind.value if isinstance(kind, Parameter.Type) else kind for kind in types]
        return response

    def _list_parameters_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        try:
            response.result = node.list_parameters(list(request.prefixes), request.depth)
        except (TypeError, ValueError):
            response.result = ListParametersResult()
        return response

    def _set_parameters_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        results = []
        for message in request.parameters:
            try:
                result = node.set_parameters_atomically([Parameter.from_parameter_msg(message)])
            except ParameterNotDeclaredException as error:
                result = SetParametersResult(successful=False, reason=str(error))
            results.append(result)
        response.results = results
        return response

    def _set_parameters_atomically_callback(self, request: Any, response: Any) -> Any:
        node = self._get_node()
        try:
            response.result = node.set_parameters_atomically(
                [Parameter.from_parameter_msg(message) for message in request.parameters])
        except ParameterNotDeclaredException as error:
            response.result = SetParametersResult(successful=False, reason=str(error))
        return response

    def _get_node(self) -> Node:
        node = self._node_weak_ref()
        if node is None:
            raise ReferenceError('Expected valid node weak reference')
        return node
