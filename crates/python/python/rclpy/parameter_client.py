"""A client of another node's parameters."""

from __future__ import annotations

import time

from rcl_interfaces.msg import Parameter as ParameterMsg
from rcl_interfaces.srv import (
    DescribeParameters, GetParameters, GetParameterTypes, ListParameters, SetParameters,
    SetParametersAtomically,
)
from rclpy._imported_names import getter_of
from rclpy.parameter import Parameter, parameter_dict_from_yaml_file
from rclpy.qos import qos_profile_parameter_events, qos_profile_services_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Sequence, Union

    from rclpy.callback_groups import CallbackGroup
    from rclpy.client import Client
    from rclpy.event_handler import SubscriptionEventCallbacks
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rclpy.qos_overriding_options import QoSOverridingOptions
    from rclpy.subscription import Subscription
    from rclpy.task import Future
else:
    __getattr__ = getter_of(__name__)


def _messages(parameters: Sequence[Union[Parameter, ParameterMsg]]) -> List[ParameterMsg]:
    return [
        parameter.to_parameter_msg() if isinstance(parameter, Parameter) else parameter
        for parameter in parameters]


class AsyncParameterClient:
    """Reads and sets the parameters of another node; every call returns a future."""

    def __init__(
        self, node: Node, remote_node_name: str,
        qos_profile: QoSProfile = qos_profile_services_default,
        callback_group: Optional[CallbackGroup] = None,
    ) -> None:
        """
        Create a client.

        :param node: The node that owns the clients of the services.
        :param remote_node_name: The name of the node that has the parameters.
        :param qos_profile: The policies of the clients.
        :param callback_group: The group in which responses are handled.
        """
        self.remote_node_name = remote_node_name
        self.node = node

        def create(service_type: Any, service: str) -> Client:
            return node.create_client(
                service_type, f'{remote_node_name}/{service}', qos_profile=qos_profile,
                callback_group=callback_group)

        self._get_parameter_client = create(GetParameters, 'get_parameters')
        self._list_parameter_client = create(ListParameters, 'list_parameters')
        self._set_parameter_client = create(SetParameters, 'set_parameters')
        self._get_parameter_types_client = create(GetParameterTypes, 'get_parameter_types')
        self._describe_parameters_client = create(DescribeParameters, 'describe_parameters')
        self._set_parameters_atomically_client = create(
            SetParametersAtomically, 'set_parameters_atomically')
        self._clients = (
            self._list_parameter_client, self._set_parameter_client, self._get_parameter_client,
            self._get_parameter_types_client, self._describe_parameters_client,
            self._set_parameters_atomically_client)

    def services_are_ready(self) -> bool:
        """Return whether the node serves its parameters now."""
        return all(client.service_is_ready() for client in self._clients)

    def wait_for_services(self, timeout_sec: Optional[float] = None) -> bool:
        """
        Wait until the node serves its parameters.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :returns: whether it does.
        """
        if timeout_sec is None or timeout_sec < 0:
            return all(client.wait_for_service() for client in self._clients)
        deadline = time.monotonic() + timeout_sec
        return all(
            client.wait_for_service(max(deadline - time.monotonic(), 0.0))
            for client in self._clients)

    def _call(self, client: Client, request: Any, callback: Optional[Callable]) -> Future:
        future = client.call_async(request)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def list_parameters(
        self, prefixes: Optional[List[str]] = None, depth: Optional[int] = None,
        callback: Optional[Callable] = None,
    ) -> Future:
        """
        List parameters.

        :param prefixes: Only names below one of them.
        :param depth: Longest name in parts below the prefix; ``None`` stands for no limit.
        :param callback: Called with the future when it is done.
        :returns: a future of a ``ListParameters.Response``.
        """
        request = ListParameters.Request()
        if prefixes:
            request.prefixes = prefixes
        if depth:
            request.depth = depth
        return self._call(self._list_parameter_client, request, callback)

    def get_parameters(self, names: List[str], callback: Optional[Callable] = None) -> Future:
        """Return a future of the values, a ``GetParameters.Response``."""
        return self._call(
            self._get_parameter_client, GetParameters.Request(names=names), callback)

    def set_parameters(
        self, parameters: Sequence[Union[Parameter, ParameterMsg]],
        callback: Optional[Callable] = None,
    ) -> Future:
        """Set parameters one by one; the future has a ``SetParameters.Response``."""
        return self._call(
            self._set_parameter_client,
            SetParameters.Request(parameters=_messages(parameters)), callback)

    def describe_parameters(self, names: List[str], callback: Optional[Callable] = None) -> Future:
        """Return a future of descriptors, a ``DescribeParameters.Response``."""
        return self._call(
            self._describe_parameters_client, DescribeParameters.Request(names=names), callback)

    def get_parameter_types(self, names: List[str], callback: Optional[Callable] = None) -> Future:
        """Return a future of types, a ``GetParameterTypes.Response``."""
        return self._call(
            self._get_parameter_types_client, GetParameterTypes.Request(names=names), callback)

    def set_parameters_atomically(
        self, parameters: Sequence[Union[Parameter, ParameterMsg]],
        callback: Optional[Callable] = None,
    ) -> Future:
        """Set all parameters or none; the future has a ``SetParametersAtomically.Response``."""
        return self._call(
            self._set_parameters_atomically_client,
            SetParametersAtomically.Request(parameters=_messages(parameters)), callback)

    def delete_parameters(self, names: List[str], callback: Optional[Callable] = None) -> Future:
        """Undeclare parameters; the future has a ``SetParameters.Response``."""
        return self.set_parameters([Parameter(name) for name in names], callback)

    def load_parameter_file(
        self, parameter_file: str, use_wildcard: bool = False,
        callback: Optional[Callable] = None,
    ) -> Future:
        """
        Set the parameters of a file one by one, whichever node the file names.

        :param use_wildcard: Use the parameters of the node ``/**`` as well.
        """
        return self.set_parameters(self._read(parameter_file, use_wildcard), callback)

    def load_parameter_file_atomically(
        self, parameter_file: str, use_wildcard: bool = False,
        callback: Optional[Callable] = None,
    ) -> Future:
        """Set all parameters of a file, or none, whichever node the file names."""
        return self.set_parameters_atomically(self._read(parameter_file, use_wildcard), callback)

    def _read(self, parameter_file: str, use_wildcard: bool) -> List[ParameterMsg]:
        return list(parameter_dict_from_yaml_file(
            parameter_file, use_wildcard).values())

    def on_parameter_event(
        self, callback: Callable, qos_profile: QoSProfile = qos_profile_parameter_events, *,
        callback_group: Optional[CallbackGroup] = None,
        event_callbacks: Optional[SubscriptionEventCallbacks] = None,
        qos_overriding_options: Optional[QoSOverridingOptions] = None, raw: bool = False,
    ) -> Subscription:
        """Subscribe to the parameter events of all nodes."""
        from rcl_interfaces.msg import ParameterEvent
        return self.node.create_subscription(
            ParameterEvent, '/parameter_events', callback, qos_profile,
            callback_group=callback_group, event_callbacks=event_callbacks,
            qos_overriding_options=qos_overriding_options, raw=raw)
