"""
Names that modules of rclpy have only because ROS 2's own modules import them.

Programs take them from there: ``from rclpy.node import ParameterDescriptor``. They are imported
at their first use, so that ``import rclpy`` stays fast.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_NAMES = {
    'geometry_msgs.msg': (
        'PointStamped PoseStamped PoseWithCovarianceStamped TransformStamped Vector3Stamped'),
    'rcl_interfaces.msg': (
        'FloatingPointRange IntegerRange ListParametersResult ParameterDescriptor ParameterEvent '
        'ParameterType ParameterValue SetParametersResult'),
    'rclpy.action.client': 'ActionClient',
    'rclpy.callback_groups': 'CallbackGroup ReentrantCallbackGroup',
    'rclpy.client': 'Client',
    'rclpy.clock': 'Clock JumpThreshold TimeJump',
    'rclpy.clock_type': 'ClockType',
    'rclpy.constants': 'S_TO_NS',
    'rclpy.context': 'Context',
    'rclpy.destroyable': 'DestroyableType',
    'rclpy.duration': 'Duration',
    'rclpy.event_handler': 'EventHandler PublisherEventCallbacks SubscriptionEventCallbacks',
    'rclpy.exceptions': (
        'InvalidParameterTypeException InvalidParameterValueException '
        'InvalidTopicNameException ParameterAlreadyDeclaredException '
        'ParameterImmutableException ParameterNotDeclaredException '
        'ParameterUninitializedException'),
    'rclpy.executors': 'Executor SingleThreadedExecutor await_or_execute',
    'rclpy.guard_condition': 'GuardCondition',
    'rclpy.impl.errors': 'InvalidHandle',
    'rclpy.impl.rcutils_logger': 'RcutilsLogger',
    'rclpy.logging': 'get_logger',
    'rclpy.logging_service': 'LoggingService',
    'rclpy.node': 'Node',
    'rclpy.parameter': 'PARAMETER_SEPARATOR_STRING Parameter',
    'rclpy.parameter_service': 'ParameterService',
    'rclpy.qos': (
        'DurabilityPolicy HistoryPolicy QoSDurabilityPolicy QoSHistoryPolicy '
        'QoSLivelinessPolicy QoSProfile QoSReliabilityPolicy'),
    'rclpy.qos_overriding_options': 'QoSOverridingOptions',
    'rclpy.service': 'Service',
    'rclpy.service_introspection': 'ServiceIntrospectionState',
    'rclpy.signals': 'SignalHandlerGuardCondition',
    'rclpy.subscription': 'Subscription',
    'rclpy.task': 'Future',
    'rclpy.time': 'Time',
    'rclpy.time_source': 'TimeSource',
    'rclpy.timer': 'Timer',
    'rclpy.type_description_service': 'TypeDescriptionService',
    'rclpy.type_support': 'check_for_type_support check_is_valid_srv_type',
    'rclpy.utilities': 'get_default_context timeout_sec_to_nsec',
    'rclpy.validate_namespace': 'validate_namespace',
    'rclpy.validate_node_name': 'validate_node_name',
    'rclpy.validate_parameter_name': 'validate_parameter_name',
    'rclpy.waitable': 'NumberOfEntities Waitable',
    'sensor_msgs.msg': 'PointCloud2',
    'std_msgs.msg': 'Header',
    'tf2_msgs.msg': 'TFMessage',
}
_ORIGINS = {name: module for module, names in _NAMES.items() for name in names.split()}
_TYPE_VARIABLES = frozenset(('MsgType', 'SrvType', 'SrvTypeRequest', 'SrvTypeResponse'))


def getter_of(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module."""
    def __getattr__(name: str) -> Any:
        origin = _ORIGINS.get(name, module)
        if origin != module:
            from importlib import import_module
            value = getattr(import_module(origin), name)
        elif name in _TYPE_VARIABLES:
            from typing import TypeVar
            value = TypeVar(name)
        else:
            raise AttributeError(f'module {module!r} has no attribute {name!r}')
        setattr(sys.modules[module], name, value)
        return value

    return __getattr__
