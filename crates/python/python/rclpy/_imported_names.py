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
    'action_msgs.msg': 'GoalStatusArray',
    'collections': 'OrderedDict defaultdict namedtuple',
    'concurrent.futures': 'ThreadPoolExecutor',
    'contextlib': 'ExitStack',
    'enum': 'Enum IntEnum',
    'functools': 'partial',
    'geometry_msgs.msg': (
        'PointStamped PoseStamped PoseWithCovarianceStamped TransformStamped Vector3Stamped'),
    'inspect': 'ismethod',
    'itertools': 'chain',
    'pathlib': 'Path',
    'rcl_interfaces.msg': (
        'FloatingPointRange IntegerRange ListParametersResult ParameterDescriptor ParameterEvent '
        'ParameterType ParameterValue SetParametersResult'),
    'rcl_interfaces.srv': 'ListParameters',
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
        'ParameterUninitializedException TimerCancelledError'),
    'rclpy.executors': 'Executor SingleThreadedExecutor await_or_execute',
    'rclpy.guard_condition': 'GuardCondition',
    'rclpy.impl.errors': 'InvalidHandle RCLError',
    'rclpy.impl.logging_severity': 'LoggingSeverity',
    'rclpy.impl.rcutils_logger': 'RcutilsLogger',
    'rclpy.logging': 'get_logger',
    'rclpy.logging_service': 'LoggingService',
    'rclpy.node': 'Node',
    'rclpy.parameter': 'PARAMETER_SEPARATOR_STRING Parameter',
    'rclpy.parameter_service': 'ParameterService',
    'rclpy.qos': (
        'DurabilityPolicy HistoryPolicy QoSDurabilityPolicy QoSHistoryPolicy '
        'QoSLivelinessPolicy QoSPresetProfiles QoSProfile QoSReliabilityPolicy '
        'qos_profile_rosout_default qos_profile_services_default'),
    'rclpy.qos_overriding_options': 'QoSOverridingOptions',
    'rclpy.service': 'Service',
    'rclpy.service_introspection': 'ServiceIntrospectionState',
    'rclpy.signals': 'SignalHandlerGuardCondition',
    'rclpy.subscription': 'Subscription',
    'rclpy.subscription_content_filter_options': 'ContentFilterOptions',
    'rclpy.task': 'Future Task',
    'rclpy.time': 'Time',
    'rclpy.time_source': 'TimeSource',
    'rclpy.timer': 'Timer TimerInfo',
    'rclpy.type_description_service': 'TypeDescriptionService',
    'rclpy.type_support': 'check_for_type_support check_is_valid_srv_type',
    'rclpy.utilities': 'get_default_context timeout_sec_to_nsec',
    'rclpy.validate_namespace': 'validate_namespace',
    'rclpy.validate_node_name': 'validate_node_name',
    'rclpy.validate_parameter_name': 'validate_parameter_name',
    'rclpy.validate_topic_name': 'TOPIC_SEPARATOR_STRING',
    'rclpy.waitable': 'NumberOfEntities Waitable',
    'sensor_msgs.msg': 'PointCloud2',
    'service_msgs.msg': 'ServiceEventInfo',
    'std_msgs.msg': 'Header',
    'tf2_msgs.msg': 'TFMessage',
    'threading': 'Condition Lock RLock',
    'type_description_interfaces.srv': 'GetTypeDescription',
    'types': 'MethodType TracebackType',
    'unique_identifier_msgs.msg': 'UUID',
    'weakref': 'WeakMethod',
}
_ORIGINS = {name: module for module, names in _NAMES.items() for name in names.split()}
_TYPE_VARIABLES = frozenset(
    'ActionT AllowableParameterValueT FeedbackT GoalT MsgT MsgType ResultT SrvRequestT '
    'SrvResponseT SrvT SrvType SrvTypeRequest SrvTypeResponse T'.split())
# Types for annotations alone.
_ANY = frozenset(
    'Action AllowableParameterValue ClockHandle ContextHandle DurationType EventHandlerData '
    'JumpHandlePreCallbackType MessageInfo Msg QoSProfileAttributes QosCallbackType Srv '
    'TimeHandle TimeJumpDictionary TypeHashDictionary WaitableEntityType YieldedCallback'.split())


def _typing_names() -> Any:
    import typing
    return typing.__all__


def getter_of(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module."""
    def __getattr__(name: str) -> Any:
        origin = _ORIGINS.get(name, module)
        if origin != module:
            from importlib import import_module
            value = getattr(import_module(origin), name)
        elif name == 'ParameterMsg':
            from rcl_interfaces.msg import Parameter as value
        elif name[:1] == '_':
            raise AttributeError(f'module {module!r} has no attribute {name!r}')
        elif name in _TYPE_VARIABLES:
            from typing import TypeVar
            value = TypeVar(name)
        elif name in _ANY:
            from typing import Any as value
        elif name in _typing_names():
            import typing
            value = getattr(typing, name)
        else:
            raise AttributeError(f'module {module!r} has no attribute {name!r}')
        setattr(sys.modules[module], name, value)
        return value

    return __getattr__
