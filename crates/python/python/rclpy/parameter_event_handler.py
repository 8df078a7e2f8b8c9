"""Callbacks of changes of parameters, of this and other nodes."""

from __future__ import annotations

import threading

from rcl_interfaces.msg import ParameterEvent
from rclpy._imported_names import getter_of
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_parameter_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

    from rclpy.callback_groups import CallbackGroup
    from rclpy.event_handler import SubscriptionEventCallbacks
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rclpy.qos_overriding_options import QoSOverridingOptions
else:
    __getattr__ = getter_of(__name__)


class ParameterCallbackHandle:
    """A callback of one parameter of one node."""

    def __init__(
        self, parameter_name: str, node_name: str, callback: Callable[[Parameter], None],
    ) -> None:
        self.parameter_name = parameter_name
        self.node_name = node_name
        self.callback = callback


class ParameterEventCallbackHandle:
    """A callback of all parameter events."""

    def __init__(self, callback: Callable[[ParameterEvent], None]) -> None:
        self.callback = callback


class ParameterEventHandler:
    """Subscribes to the parameter events and calls back for the ones that matter."""

    class Callbacks:
        """The callbacks of a handler. The last one that was added is called first."""

        def __init__(self) -> None:
            self.parameter_callbacks: Dict[
                Tuple[str, str], List[ParameterCallbackHandle]] = {}
            self.event_callbacks: List[ParameterEventCallbackHandle] = []
            self.mutex = threading.RLock()

        def event_callback(self, event: ParameterEvent) -> None:
            """Call the callbacks that an event concerns."""
            with self.mutex:
                for (parameter_name, node_name), handles in list(
                        self.parameter_callbacks.items()):
                    parameter = ParameterEventHandler.get_parameter_from_event(
                        event, parameter_name, node_name)
                    if parameter is not None:
                        for handle in list(handles):
                            handle.callback(parameter)
                for event_handle in list(self.event_callbacks):
                    event_handle.callback(event)

        def add_parameter_callback(
            self, parameter_name: str, node_name: str, callback: Callable[[Parameter], None],
        ) -> ParameterCallbackHandle:
            """Add a callback of one parameter."""
            with self.mutex:
                handle = ParameterCallbackHandle(parameter_name, node_name, callback)
                self.parameter_callbacks.setdefault(
                    (parameter_name, node_name), []).insert(0, handle)
                return handle

        def remove_parameter_callback(self, handle: ParameterCallbackHandle) -> None:
            """Remove a callback of one parameter; ``RuntimeError`` if it is not there."""
            with self.mutex:
                key = (handle.parameter_name, handle.node_name)
                handles = self.parameter_callbacks.get(key, [])
                if handle not in handles:
                    raise RuntimeError("Callback doesn't exist")
                handles.remove(handle)
                if not handles:
                    del self.parameter_callbacks[key]

        def add_parameter_event_callback(
            self, callback: Callable[[ParameterEvent], None],
        ) -> ParameterEventCallbackHandle:
            """Add a callback of all events."""
            with self.mutex:
                handle = ParameterEventCallbackHandle(callback)
                self.event_callbacks.insert(0, handle)
                return handle

        def remove_parameter_event_callback(self, handle: ParameterEventCallbackHandle) -> None:
            """Remove a callback of all events; ``RuntimeError`` if it is not there."""
            with self.mutex:
                if handle not in self.event_callbacks:
                    raise RuntimeError("Callback doesn't exist")
                self.event_callbacks.remove(handle)

    def __init__(
        self, node: Node, qos_profile: QoSProfile = qos_profile_parameter_events,
        callback_group: Optional[CallbackGroup] = None,
        event_callbacks: Optional[SubscriptionEventCallbacks] = None,
        qos_overriding_options: Optional[QoSOverridingOptions] = None, raw: bool = False,
    ) -> None:
        """
        Create a handler; the parameters after ``node`` are those of its subscription.

        :param node: The node that subscribes to the events.
        """
        self.node = node
        self.qos_profile = qos_profile
        self._callbacks = ParameterEventHandler.Callbacks()
        self.parameter_event_subscription = node.create_subscription(
            ParameterEvent, '/parameter_events', self._callbacks.event_callback, qos_profile,
            callback_group=callback_group, event_callbacks=event_callbacks,
            qos_overriding_options=qos_overriding_options, raw=raw)

    def destroy(self) -> None:
        """Destroy the subscription."""
        self.node.destroy_subscription(self.parameter_event_subscription)

    @staticmethod
    def get_parameter_from_event(
        event: ParameterEvent, parameter_name: str, node_name: str,
    ) -> Optional[Parameter]:
        """Return a parameter that an event says is new or changed, else ``None``."""
        if event.node == node_name:
            for parameter in ParameterEventHandler.get_parameters_from_event(event):
                if parameter.name == parameter_name:
                    return parameter
        return None

    @staticmethod
    def get_parameters_from_event(event: ParameterEvent) -> Iterable[Any]:
        """Yield the parameters that an event says are new or changed."""
        yield from event.new_parameters
        yield from event.changed_parameters

    def add_parameter_callback(
        self, parameter_name: str, node_name: str, callback: Callable[[Parameter], None],
    ) -> ParameterCallbackHandle:
        """
        Add a callback of one parameter.

        :param node_name: The node that has it, relative to this node's namespace; an empty
            name stands for this node.
        """
        return self._callbacks.add_parameter_callback(
            parameter_name, self._resolve_path(node_name), callback)

    def remove_parameter_callback(self, handle: ParameterCallbackHandle) -> None:
        """
        Remove a callback of one parameter.

        :raises RuntimeError: if it is not there.
        """
        self._callbacks.remove_parameter_callback(handle)

    def add_parameter_event_callback(
        self, callback: Callable[[ParameterEvent], None],
    ) -> ParameterEventCallbackHandle:
        """Add a callback of all parameter events."""
        return self._callbacks.add_parameter_event_callback(callback)

    def remove_parameter_event_callback(self, handle: ParameterEventCallbackHandle) -> None:
        """
        Remove a callback of all parameter events.

        :raises RuntimeError: if it is not there.
        """
        self._callbacks.remove_parameter_event_callback(handle)

    def _resolve_path(self, node_path: Optional[str] = None) -> str:
        if not node_path:
            return self.node.get_fully_qualified_name()
        if node_path.startswith('/'):
            return node_path
        return self.node.get_namespace().rstrip('/') + '/' + node_path
