"""The time source of a node: connects its clocks with the topic ``/clock``."""

from __future__ import annotations

import weakref

from rclpy._imported_names import getter_of
from rclpy.clock import ROSClock
from rclpy.clock_type import ClockType
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from rcl_interfaces.msg import SetParametersResult
    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)

CLOCK_TOPIC = '/clock'
USE_SIM_TIME_NAME = 'use_sim_time'


class TimeSource:
    """Sets clocks to the time of ``/clock`` while the parameter ``use_sim_time`` is true."""

    def __init__(self, *, node: Optional[Node] = None) -> None:
        """Create a time source, attached to a node if one is given."""
        self._clock_sub: Any = None
        self._node_weak_ref: Optional[weakref.ref] = None
        self._associated_clocks: List[ROSClock] = []
        # The last time of /clock, for clocks that are attached later.
        self._last_time_set = Time(clock_type=ClockType.ROS_TIME)
        self._ros_time_is_active = False
        if node is not None:
            self.attach_node(node)

    @property
    def ros_time_is_active(self) -> bool:
        """Whether clocks follow ``/clock``."""
        return self._ros_time_is_active

    @ros_time_is_active.setter
    def ros_time_is_active(self, enabled: bool) -> None:
        if self._ros_time_is_active == enabled:
            return
        self._ros_time_is_active = enabled
        for clock in self._associated_clocks:
            clock._set_ros_time_is_active(enabled)
        if enabled:
            self._subscribe_to_clock_topic()
        else:
            self._unsubscribe()

    def _subscribe_to_clock_topic(self) -> None:
        node = self._get_node()
        if self._clock_sub is None and node is not None:
            from rosgraph_msgs.msg import Clock
            self._clock_sub = node.create_subscription(
                Clock, CLOCK_TOPIC, self.clock_callback,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))

    def _unsubscribe(self) -> None:
        node = self._get_node()
        subscription, self._clock_sub = self._clock_sub, None
        if subscription is not None and node is not None:
            node.destroy_subscription(subscription)

    def attach_node(self, node: Node) -> None:
        """
        Follow the parameter ``use_sim_time`` of a node, and declare it if necessary.

        :raises TypeError: if ``node`` is no node.
        """
        from rclpy.node import Node
        if not isinstance(node, Node):
            raise TypeError(f'Node must be of type rclpy.node.Node, got {type(node).__name__}')
        if self._node_weak_ref is not None:
            self.detach_node()
        self._node_weak_ref = weakref.ref(node)
        if not node.has_parameter(USE_SIM_TIME_NAME):
            node.declare_parameter(USE_SIM_TIME_NAME, False)
        use_sim_time = node.get_parameter(USE_SIM_TIME_NAME)
        if use_sim_time.type_ is Parameter.Type.BOOL:
            self.ros_time_is_active = use_sim_time.value
        elif use_sim_time.type_ is not Parameter.Type.NOT_SET:
            node.get_logger().error(
                f"Invalid type for parameter '{USE_SIM_TIME_NAME}' {use_sim_time.type_!r} "
                'should be bool')
        node.add_on_set_parameters_callback(self._on_parameter_event)

    def detach_node(self) -> None:
        """Stop following the node's parameter, and its ``/clock``."""
        self._unsubscribe()
        node = self._get_node()
        if node is not None:
            try:
                node.remove_on_set_parameters_callback(self._on_parameter_event)
            except ValueError:
                # It was detached before.
                pass
        self._node_weak_ref = None

    def attach_clock(self, clock: ROSClock) -> None:
        """
        Set a clock from now on.

        :raises ValueError: if it is no clock of ROS time.
        """
        if not isinstance(clock, ROSClock):
            raise ValueError(f'Only clocks with type ROS_TIME can be attached, got {clock!r}')
        clock.set_ros_time_override(self._last_time_set)
        clock._set_ros_time_is_active(self._ros_time_is_active)
        self._associated_clocks.append(clock)

    def clock_callback(self, msg: Any) -> None:
        """Set the clocks to the time of a message of ``/clock``."""
        self._last_time_set = Time.from_msg(msg.clock)
        for clock in self._associated_clocks:
            clock.set_ros_time_override(self._last_time_set)

    def _on_parameter_event(self, parameter_list: List[Parameter]) -> SetParametersResult:
        from rcl_interfaces.msg import SetParametersResult
        for parameter in parameter_list:
            if parameter.name != USE_SIM_TIME_NAME:
                continue
            if parameter.type_ is not Parameter.Type.BOOL:
                return SetParametersResult(
                    successful=False,
                    reason=f'{USE_SIM_TIME_NAME} parameter set to something besides a bool')
            self.ros_time_is_active = parameter.value
        return SetParametersResult(successful=True)

    def _get_node(self) -> Optional[Node]:
        return self._node_weak_ref() if self._node_weak_ref is not None else None
