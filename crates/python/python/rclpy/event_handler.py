"""Events of publishers and subscriptions: deadlines, liveliness, incompatible QoS, matches."""

from __future__ import annotations

import contextlib
import warnings
from enum import IntEnum

import rclpy.logging
from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl.errors import UnsupportedEventTypeError
from rclpy.impl.named_enum import NamedEnum
from rclpy.qos import QoSPolicyKind, qos_policy_name_from_kind
from rclpy.waitable import NumberOfEntities, StaticWaitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from rclpy.callback_groups import CallbackGroup
else:
    __getattr__ = getter_of(__name__)

_LOGGER_NAME = 'rclpy.event_handler'


class QoSPublisherEventType(NamedEnum):
    """Events of publishers."""

    RCL_PUBLISHER_OFFERED_DEADLINE_MISSED = 0
    RCL_PUBLISHER_LIVELINESS_LOST = 1
    RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS = 2
    RCL_PUBLISHER_INCOMPATIBLE_TYPE = 3
    RCL_PUBLISHER_MATCHED = 4


class QoSSubscriptionEventType(NamedEnum):
    """Events of subscriptions."""

    RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED = 0
    RCL_SUBSCRIPTION_LIVELINESS_CHANGED = 1
    RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS = 2
    RCL_SUBSCRIPTION_MESSAGE_LOST = 3
    RCL_SUBSCRIPTION_INCOMPATIBLE_TYPE = 4
    RCL_SUBSCRIPTION_MATCHED = 5


# As the classes of ROS 2's C extension are called.
QoSPublisherEventType._shown_as = 'rcl_publisher_event_type_t'  # type: ignore[attr-defined]
QoSSubscriptionEventType._shown_as = 'rcl_subscription_event_type_t'  # type: ignore[attr-defined]


class _Status:
    """Base of the statuses that event callbacks get."""

    __slots__ = ()
    _fields = ('total_count', 'total_count_change')

    def __init__(self, *values: Any) -> None:
        for field, value in zip(self._fields, values or (0,) * len(self._fields)):
            setattr(self, field, value)

    def __repr__(self) -> str:
        values = ', '.join(f'{field}={getattr(self, field)}' for field in self._fields)
        return f'{type(self).__name__}({values})'

    @classmethod
    def _from_native(cls, status: Any) -> _Status:
        return cls(*(getattr(status, field) for field in cls._fields))


class QoSRequestedDeadlineMissedInfo(_Status):
    """Messages that came later than the subscription's deadline."""

    __slots__ = _fields = ('total_count', 'total_count_change')


class QoSOfferedDeadlineMissedInfo(_Status):
    """Messages that the publisher published later than its deadline."""

    __slots__ = _fields = ('total_count', 'total_count_change')


class QoSLivelinessChangedInfo(_Status):
    """Matched publishers that are alive, and that are not."""

    __slots__ = _fields = (
        'alive_count', 'not_alive_count', 'alive_count_change', 'not_alive_count_change')


class QoSLivelinessLostInfo(_Status):
    """Times that the publisher did not show in time that it is alive."""

    __slots__ = _fields = ('total_count', 'total_count_change')


class QoSMessageLostInfo(_Status):
    """Messages that the subscription lost."""

    __slots__ = _fields = ('total_count', 'total_count_change')


# Equal to :class:`QoSPolicyKind`, but with the text of ROS 2's C extension.
_PolicyKind = NamedEnum(  # type: ignore[misc]
    'rmw_qos_policy_kind_t',
    {f'RMW_QOS_POLICY_{kind.name}': kind.value for kind in QoSPolicyKind}, module=__name__)


class QoSRequestedIncompatibleQoSInfo(_Status):
    """Endpoints that do not match because of their QoS, and the last policy at fault."""

    __slots__ = _fields = ('total_count', 'total_count_change', 'last_policy_kind')

    def __init__(self, *values: Any) -> None:
        count, change, kind = values or (0, 0, 1)
        super().__init__(count, change, _PolicyKind(kind))


QoSOfferedIncompatibleQoSInfo = QoSRequestedIncompatibleQoSInfo


class QoSSubscriptionMatchedInfo(_Status):
    """Endpoints that matched in all, and that match now."""

    __slots__ = _fields = (
        'total_count', 'total_count_change', 'current_count', 'current_count_change')


QoSPublisherMatchedInfo = QoSSubscriptionMatchedInfo


class IncompatibleTypeInfo(_Status):
    """Endpoints of the topic that have another type."""

    __slots__ = _fields = ('total_count', 'total_count_change')


_SUBSCRIPTION_STATUS = (
    QoSRequestedDeadlineMissedInfo, QoSLivelinessChangedInfo, QoSRequestedIncompatibleQoSInfo,
    QoSMessageLostInfo, IncompatibleTypeInfo, QoSSubscriptionMatchedInfo)
_PUBLISHER_STATUS = (
    QoSOfferedDeadlineMissedInfo, QoSLivelinessLostInfo, QoSOfferedIncompatibleQoSInfo,
    IncompatibleTypeInfo, QoSPublisherMatchedInfo)


def _status_class(event_type: IntEnum) -> Any:
    if isinstance(event_type, QoSSubscriptionEventType):
        return _SUBSCRIPTION_STATUS[event_type]
    return _PUBLISHER_STATUS[event_type]


class EventHandler(StaticWaitable):
    """A callback of one event of a publisher or subscription."""

    def __init__(
        self, *, callback_group: CallbackGroup, callback: Callable[[Any], Any],
        event_type: IntEnum, parent_impl: Any,
    ) -> None:
        """
        Create a handler.

        :raises UnsupportedEventTypeError: if the middleware does not offer the event.
        """
        super().__init__(callback_group)
        self.callback = callback
        self._status_class = _status_class(event_type)
        self.__event = _native.EventHandle(parent_impl, int(event_type))

    def _static_handles(self) -> Any:
        return (self.__event,)

    def _take_handle(self, handle: Any, executor: Any) -> Any:
        status = self.__event.take_event()
        if status is None:
            return None
        return self.callback, (self._status_class._from_native(status),)

    def get_num_entities(self) -> NumberOfEntities:
        """Return one event."""
        return NumberOfEntities(num_events=1)

    def destroy(self) -> None:
        """Destroy the handler."""
        self.__event.destroy_when_not_in_use()


class QoSEventHandler(EventHandler):
    """The old name of :class:`EventHandler`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        warnings.warn(
            'QoSEventHandler is deprecated, use EventHandler instead.', DeprecationWarning,
            stacklevel=2)
        super().__init_subclass__(**kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            'QoSEventHandler is deprecated, use EventHandler instead.', DeprecationWarning,
            stacklevel=2)
        super().__init__(*args, **kwargs)


class _EventCallbacks:
    """What callbacks of subscriptions and publishers share."""

    use_default_callbacks: bool

    def _handlers(
        self, callback_group: CallbackGroup, parent: Any, kinds: Dict[str, IntEnum],
        texts: Dict[str, Callable[[Any], str]],
    ) -> List[EventHandler]:
        """Create the handlers by attribute; those without a callback may log a warning."""
        handlers: List[EventHandler] = []
        for name, kind in kinds.items():
            callback = getattr(self, name)
            is_optional = not callback and self.use_default_callbacks and name in texts
            if is_optional:
                def callback(status: Any, text: Any = texts[name]) -> None:
                    rclpy.logging.get_logger(_LOGGER_NAME).warn(text(status))
            if callback:
                ignored = (UnsupportedEventTypeError,) if is_optional else ()
                with contextlib.suppress(*ignored):
                    handlers.append(EventHandler(
                        callback_group=callback_group, callback=callback, event_type=kind,
                        parent_impl=parent))
        return handlers


class SubscriptionEventCallbacks(_EventCallbacks):
    """The event callbacks of a subscription."""

    def __init__(
        self, *, deadline: Optional[Callable[[QoSRequestedDeadlineMissedInfo], None]] = None,
        incompatible_qos: Optional[Callable[[QoSRequestedIncompatibleQoSInfo], None]] = None,
        liveliness: Optional[Callable[[QoSLivelinessChangedInfo], None]] = None,
        message_lost: Optional[Callable[[QoSMessageLostInfo], None]] = None,
        incompatible_type: Optional[Callable[[IncompatibleTypeInfo], None]] = None,
        matched: Optional[Callable[[QoSSubscriptionMatchedInfo], None]] = None,
        use_default_callbacks: bool = True,
    ) -> None:
        """
        Collect callbacks; each gets the status that its annotation names.

        :param use_default_callbacks: Warn of incompatible QoS and types where no callback of
            theirs is given.
        """
        self.deadline = deadline
        self.incompatible_qos = incompatible_qos
        self.liveliness = liveliness
        self.message_lost = message_lost
        self.incompatible_type = incompatible_type
        self.matched = matched
        self.use_default_callbacks = use_default_callbacks

    def create_event_handlers(
        self, callback_group: CallbackGroup, subscription: Any, topic_name: str,
    ) -> List[EventHandler]:
        """Create the handlers of a subscription."""
        kinds = QoSSubscriptionEventType
        return self._handlers(callback_group, subscription, {
            'deadline': kinds.RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED,
            'incompatible_qos': kinds.RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS,
            'liveliness': kinds.RCL_SUBSCRIPTION_LIVELINESS_CHANGED,
            'message_lost': kinds.RCL_SUBSCRIPTION_MESSAGE_LOST,
            'incompatible_type': kinds.RCL_SUBSCRIPTION_INCOMPATIBLE_TYPE,
            'matched': kinds.RCL_SUBSCRIPTION_MATCHED,
        }, {
            'incompatible_qos': lambda status: (
                f"New publisher discovered on topic '{topic_name}', offering incompatible QoS. "
                'No messages will be received from it. Last incompatible policy: '
                f'{qos_policy_name_from_kind(status.last_policy_kind)}'),
            'incompatible_type': lambda status: (
                f"Incompatible type on topic '{topic_name}', no messages will be received from "
                'it.'),
        })


class PublisherEventCallbacks(_EventCallbacks):
    """The event callbacks of a publisher."""

    def __init__(
        self, *, deadline: Optional[Callable[[QoSOfferedDeadlineMissedInfo], None]] = None,
        liveliness: Optional[Callable[[QoSLivelinessLostInfo], None]] = None,
        incompatible_qos: Optional[Callable[[QoSOfferedIncompatibleQoSInfo], None]] = None,
        incompatible_type: Optional[Callable[[IncompatibleTypeInfo], None]] = None,
        matched: Optional[Callable[[QoSPublisherMatchedInfo], None]] = None,
        use_default_callbacks: bool = True,
    ) -> None:
        """
        Collect callbacks; each gets the status that its annotation names.

        :param use_default_callbacks: Warn of incompatible QoS and types where no callback of
            theirs is given.
        """
        self.deadline = deadline
        self.liveliness = liveliness
        self.incompatible_qos = incompatible_qos
        self.incompatible_type = incompatible_type
        self.matched = matched
        self.use_default_callbacks = use_default_callbacks

    def create_event_handlers(
        self, callback_group: CallbackGroup, publisher: Any, topic_name: str,
    ) -> List[EventHandler]:
        """Create the handlers of a publisher."""
        kinds = QoSPublisherEventType
        return self._handlers(callback_group, publisher, {
            'deadline': kinds.RCL_PUBLISHER_OFFERED_DEADLINE_MISSED,
            'liveliness': kinds.RCL_PUBLISHER_LIVELINESS_LOST,
            'incompatible_qos': kinds.RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS,
            'incompatible_type': kinds.RCL_PUBLISHER_INCOMPATIBLE_TYPE,
            'matched': kinds.RCL_PUBLISHER_MATCHED,
        }, {
            'incompatible_qos': lambda status: (
                f"New subscription discovered on topic '{topic_name}', requesting incompatible "
                'QoS. No messages will be sent to it. Last incompatible policy: '
                f'{qos_policy_name_from_kind(status.last_policy_kind)}'),
            'incompatible_type': lambda status: (
                f"Incompatible type on topic '{topic_name}', no messages will be sent to it."),
        })
