"""
The implementation below rclpy, under the names that rclpy's own C extension has.

Waitables of users create handles with these classes. Everything else in rclpy uses the native
module directly.
"""

from __future__ import annotations

from pteros import _native
from rclpy.clock import NativeClockChange
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.event_handler import (
    IncompatibleTypeInfo, QoSLivelinessChangedInfo, QoSLivelinessLostInfo, QoSMessageLostInfo,
    QoSOfferedDeadlineMissedInfo, QoSPublisherEventType, QoSRequestedDeadlineMissedInfo,
    QoSRequestedIncompatibleQoSInfo, QoSSubscriptionEventType, QoSSubscriptionMatchedInfo,
    _status_class,
)
from rclpy.impl import errors, handle_methods  # noqa: F401
from rclpy.impl.wait_set import WaitSet
from rclpy.qos import QoSCompatibility
from rclpy.service_introspection import ServiceIntrospectionState
from rclpy.signals import SignalHandlerOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class _Wrapped:
    """Base of handles that have more names than the native ones."""

    _native_handle: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__['_native_handle'], name)

    def __enter__(self) -> Any:
        self._native_handle.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self._native_handle.__exit__(*args)


def _unwrapped(handle: Any) -> Any:
    return getattr(handle, '_native_handle', handle)


class Client(_Wrapped):
    """A client of a service."""

    def __init__(self, node: Any, srv_type: Any, name: str, qos: Any) -> None:
        self._native_handle = _native.Client(node, srv_type, name, _qos(qos))

    def take_response(self, response_type: Any = None) -> Any:
        """Return the header and the response, or two times ``None``."""
        taken = self._native_handle.take_response()
        return (None, None) if taken is None else taken


def Service(node: Any, srv_type: Any, name: str, qos: Any) -> Any:
    """Create a server of a service."""
    return _native.Service(node, srv_type, name, _qos(qos))


def Subscription(node: Any, msg_type: Any, topic: str, qos: Any) -> Any:
    """Create a subscription of a topic."""
    return _native.Subscription(node, msg_type, topic, _qos(qos))


class EventHandle(_Wrapped):
    """An event of a publisher or subscription."""

    def __init__(self, parent: Any, event_type: Any) -> None:
        self._native_handle = _native.EventHandle(_unwrapped(parent), int(event_type))
        self._event_status = _status_class(event_type)

    def take_event(self) -> Any:
        """Return the status; its changes count from the last call."""
        status = self._native_handle.take_event()
        return self._event_status() if status is None else self._event_status._from_native(status)


class rmw_qos_profile_t:
    """A QoS profile as plain values."""

    _names = (
        'history', 'depth', 'reliability', 'durability', 'lifespan', 'deadline', 'liveliness',
        'liveliness_lease_duration', 'avoid_ros_namespace_conventions')

    def __init__(self, *values: Any) -> None:
        self._native_handle = _native.rmw_qos_profile_t(*(
            value.nanoseconds if isinstance(value, Duration) else value for value in values))

    def to_dict(self) -> Any:
        """Return the policies by name, with durations as :class:`Duration`."""
        from rclpy.topic_endpoint_info import _with_durations
        return _with_durations(self._native_handle.to_dict())

    @staticmethod
    def predefined(name: str) -> rmw_qos_profile_t:
        """Return the preset with a name such as ``qos_profile_default``."""
        import rclpy.qos
        return getattr(rclpy.qos, name).get_c_qos_profile()


def _qos(profile: Any) -> Any:
    return getattr(profile, '_native_handle', profile)


class _Introspection:
    ServiceIntrospectionState = ServiceIntrospectionState


class rclpy_implementation:
    """The names of the implementation."""

    Client = Client
    Service = staticmethod(Service)
    Subscription = staticmethod(Subscription)
    Publisher = _native.Publisher
    EventHandle = EventHandle
    GuardCondition = _native.GuardCondition
    Timer = _native.Timer
    Clock = _native.Clock
    Context = _native.Context
    Node = _native.Node
    WaitSet = WaitSet
    InvalidHandle = errors.InvalidHandle
    RCLError = errors.RCLError
    RCLInvalidROSArgsError = errors.RCLInvalidROSArgsError
    UnknownROSArgsError = errors.UnknownROSArgsError
    NodeNameNonExistentError = errors.NodeNameNonExistentError
    UnsupportedEventTypeError = errors.UnsupportedEventTypeError
    rmw_qos_profile_t = rmw_qos_profile_t
    ClockType = ClockType
    ClockChange = NativeClockChange
    QoSCompatibility = QoSCompatibility
    SignalHandlerOptions = SignalHandlerOptions
    service_introspection = _Introspection
    rcl_publisher_event_type_t = QoSPublisherEventType
    rcl_subscription_event_type_t = QoSSubscriptionEventType
    rmw_requested_deadline_missed_status_t = QoSRequestedDeadlineMissedInfo
    rmw_offered_deadline_missed_status_t = QoSOfferedDeadlineMissedInfo
    rmw_liveliness_changed_status_t = QoSLivelinessChangedInfo
    rmw_liveliness_lost_status_t = QoSLivelinessLostInfo
    rmw_message_lost_status_t = QoSMessageLostInfo
    rmw_requested_qos_incompatible_event_status_t = QoSRequestedIncompatibleQoSInfo
    rmw_matched_status_t = QoSSubscriptionMatchedInfo
    rmw_incompatible_type_status_t = IncompatibleTypeInfo
    RMW_DURATION_INFINITE = _native.DURATION_INFINITE
    RMW_QOS_DEADLINE_BEST_AVAILABLE = _native.DURATION_BEST_AVAILABLE
    RMW_QOS_LIVELINESS_LEASE_DURATION_BEST_AVAILABLE = _native.DURATION_BEST_AVAILABLE

    @staticmethod
    def rclpy_get_rmw_implementation_identifier() -> str:
        """Return the name of the middleware."""
        return _native.get_rmw_implementation_identifier()

    @staticmethod
    def rclpy_serialize(message: Any, message_type: Optional[Any] = None) -> bytes:
        """Serialize a message."""
        return _native.serialize_message(message)

    @staticmethod
    def rclpy_deserialize(payload: bytes, message_type: Any) -> Any:
        """Create a message from its serialized form."""
        return _native.deserialize_message(payload, message_type)
