"""Subscriptions of topics."""

from __future__ import annotations

from enum import Enum
from rclpy._imported_names import getter_of
from rclpy.impl.node_entity import NodeEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Union

    from pteros import _native
    from rclpy.callback_groups import CallbackGroup
    from rclpy.event_handler import EventHandler, SubscriptionEventCallbacks
    from rclpy.qos import QoSProfile
    from rclpy.subscription_content_filter_options import ContentFilterOptions
else:
    __getattr__ = getter_of(__name__)

_CO_VARARGS = 0x04


def _takes_arguments(callback: Callable[..., Any], count: int) -> bool:
    """Return whether a callback can be called with ``count`` positional arguments."""
    function = callback
    bound = 0
    if hasattr(function, '__func__'):
        function = function.__func__
        bound = 1
    code = getattr(function, '__code__', None)
    if code is not None and not hasattr(function, '__wrapped__'):
        # A plain function: its code says it, without the slow import of inspect.
        required_keywords = code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
        if required_keywords > 0:
            return False
        required = code.co_argcount - len(function.__defaults__ or ())
        if count + bound < required:
            return False
        return bool(code.co_flags & _CO_VARARGS) or count + bound <= code.co_argcount
    import inspect
    try:
        inspect.signature(callback).bind(*(object(),) * count)
    except (TypeError, ValueError):
        return False
    return True


class Subscription(NodeEntity):
    """Calls back for each message of one topic."""

    # Where `src/spin.rs` finds the callback that it calls as `_executor_call` does.
    _plain_callback = '_callback'

    class CallbackType(Enum):
        """The arguments of the callback."""

        MessageOnly = 0
        WithMessageInfo = 1

    def __init__(
        self, subscription_impl: _native.Subscription, msg_type: Any, topic: str,
        callback: Callable[..., Any], callback_group: CallbackGroup, qos_profile: QoSProfile,
        raw: Union[bool, type], event_callbacks: SubscriptionEventCallbacks,
    ) -> None:
        """Create a subscription; use :meth:`rclpy.node.Node.create_subscription`."""
        self.__subscription = subscription_impl
        self.msg_type = msg_type
        self.topic = topic
        self.callback = callback
        self.callback_group = callback_group
        self._executor_event = False
        self.qos_profile = qos_profile
        self.raw = bool(raw)
        self._raw_class = memoryview if raw is memoryview else bytes
        self._take = subscription_impl.take_raw if raw else subscription_impl.take
        self._take_arguments = subscription_impl.take_arguments
        self.event_handlers: List[EventHandler] = event_callbacks.create_event_handlers(
            callback_group, subscription_impl, topic)

    def get_publisher_count(self) -> int:
        """Return how many publishers are matched."""
        return self.__subscription.get_publisher_count()

    @property
    def handle(self) -> _native.Subscription:
        """The handle of the implementation."""
        return self.__subscription

    def destroy(self) -> None:
        """Destroy the subscription; use ``Node.destroy_subscription``."""
        for handler in self.event_handlers:
            handler.destroy()
        self.__subscription.destroy_when_not_in_use()

    @property
    def topic_name(self) -> str:
        """The full name of the topic, remapped."""
        return self.__subscription.get_topic_name()

    @property
    def callback(self) -> Callable[..., Any]:
        """The function that gets the message, and its info if it takes two arguments."""
        return self._callback

    @callback.setter
    def callback(self, value: Callable[..., Any]) -> None:
        if _takes_arguments(value, 1):
            kind = Subscription.CallbackType.MessageOnly
        elif _takes_arguments(value, 2):
            kind = Subscription.CallbackType.WithMessageInfo
        else:
            raise RuntimeError(
                'Subscription.__init__(): callback should be either be callable with one argument '
                '(to get only the message) or two (to get message and message info)')
        self._callback = value
        self._callback_type = kind
        self._with_info = kind is Subscription.CallbackType.WithMessageInfo

    @property
    def is_cft_enabled(self) -> bool:
        """Whether a content filter selects the messages."""
        return self.__subscription.is_cft_enabled

    def set_content_filter(self, filter_expression: str, expression_parameters: Any = ()) -> None:
        """
        Set the content filter; an empty expression removes it.

        :raises RCLError: if the expression is wrong.
        """
        self.__subscription.set_content_filter(filter_expression, list(expression_parameters))

    def get_content_filter(self) -> Optional[ContentFilterOptions]:
        """Return the expression and its parameters, or ``None`` without a filter."""
        options = self.__subscription.get_content_filter()
        if options is None:
            return None
        from rclpy.subscription_content_filter_options import ContentFilterOptions as Options
        return Options(*options)

    def _executor_take(self, executor: Any) -> Any:
        if not self._with_info and not self.raw:
            return self._take_arguments(executor)
        taken = self._take()
        if taken is None:
            return None
        if self._with_info:
            message, info = taken
            return (self._raw_class(message) if self.raw else message), info.to_dict()
        return (self._raw_class(taken[0]),)

    def _executor_call(self, *args: Any) -> Any:
        return self._callback(*args)
