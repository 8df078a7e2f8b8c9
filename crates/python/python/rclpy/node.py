"""Nodes: publishers, subscriptions, services, timers and parameters under one name."""

from __future__ import annotations

import itertools
import threading
import time
import weakref

from pteros import _native
from rcl_interfaces.msg import ParameterEvent
from rclpy._imported_names import getter_of
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.client import Client
from rclpy.clock import ROSClock
from rclpy.constants import S_TO_NS
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import (
    InvalidNamespaceException, InvalidNodeNameException, NotInitializedException,
)
from rclpy.expand_topic_name import expand_topic_name
from rclpy.guard_condition import GuardCondition
from rclpy.impl import handle_methods  # noqa: F401
from rclpy.impl.errors import NodeNameNonExistentError, RCLError
from rclpy.impl.node_parameters import NodeParameters
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, qos_profile_parameter_events, qos_profile_services_default
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Rate, Timer
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.type_support import check_is_valid_msg_type, check_is_valid_srv_type
from rclpy.utilities import get_default_context
from rclpy.validate_full_topic_name import validate_full_topic_name
from rclpy.validate_topic_name import validate_topic_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, List, Optional, Tuple, Type, Union

    from rclpy.callback_groups import CallbackGroup
    from rclpy.clock import Clock
    from rclpy.context import Context
    from rclpy.executors import Executor
    from rclpy.impl.rcutils_logger import RcutilsLogger
    from rclpy.qos_overriding_options import QoSOverridingOptions
    from rclpy.subscription_content_filter_options import ContentFilterOptions
    from rclpy.waitable import Waitable

    NamesAndTypes = List[Tuple[str, List[str]]]
else:
    __getattr__ = getter_of(__name__)

HIDDEN_NODE_PREFIX = '_'
"""Names of hidden nodes begin with it."""

__all__ = ['HIDDEN_NODE_PREFIX', 'Node', 'NodeNameNonExistentError']

_PERIOD_MAX_NS = 2**63 - 1

_versions = itertools.count(1)
"""Versions of the entities of all nodes; no two are equal."""


class Node(NodeParameters):
    """
    A node: the owner of publishers, subscriptions, clients, services, timers and parameters.

    Its callbacks run in the executor that the node was added to.

    Once the context is shut down, ``RCLError`` is raised by all that publishes, sets
    parameters, looks into the graph or creates an entity. Destroying goes on to work.
    """

    # The classes of what the node creates; nodes of other kinds have their own.
    _clock_class: Any = ROSClock
    _subscription_class: Any = Subscription
    _client_class: Any = Client
    _service_class: Any = Service
    _timer_class: Any = Timer

    def __init__(
        self, node_name: str, *, context: Optional[Context] = None,
        cli_args: Optional[List[str]] = None, namespace: Optional[str] = None,
        use_global_arguments: bool = True, enable_rosout: bool = True,
        start_parameter_services: bool = True,
        parameter_overrides: Optional[List[Parameter]] = None,
        allow_undeclared_parameters: bool = False,
        automatically_declare_parameters_from_overrides: bool = False,
        enable_logger_service: bool = False,
    ) -> None:
        """
        Create a node.

        :param node_name: Its name, which a remapping ``__node`` replaces.
        :param context: Its context; ``None`` stands for the default one.
        :param cli_args: ROS arguments of this node alone.
        :param namespace: Its namespace, which a remapping ``__ns`` replaces.
        :param use_global_arguments: Use the ROS arguments of the context too.
        :param enable_rosout: Publish its log messages on ``/rosout``.
        :param start_parameter_services: Let others read and set its parameters.
        :param parameter_overrides: First values of parameters, which take precedence over
            arguments and declarations.
        :param allow_undeclared_parameters: Let parameters be set that are not declared.
        :param automatically_declare_parameters_from_overrides: Declare a parameter for each
            override.
        :param enable_logger_service: Let others read and set the levels of loggers.
        :raises NotInitializedException: if the context is not initialized or is shut down.
        :raises InvalidNodeNameException: if the name is invalid.
        :raises InvalidNamespaceException: if the namespace is invalid.
        """
        self.__handle: Any = None
        self._context = get_default_context() if context is None else context
        self._init_parameters()
        self._publishers: List[Publisher] = []
        self._subscriptions: List[Subscription] = []
        self._clients: List[Client] = []
        self._services: List[Service] = []
        self._timers: List[Timer] = []
        self._guards: List[GuardCondition] = []
        self._waitables: List[Waitable] = []
        self._entities_lock = threading.Lock()
        self._entities_version = next(_versions)
        self._default_callback_group = MutuallyExclusiveCallbackGroup()
        self._rate_group = ReentrantCallbackGroup()
        self.__executor_weakref: Optional[weakref.ref] = None

        if not self._context.ok():
            raise NotInitializedException('cannot create node')
        try:
            self.__handle = _native.Node(
                self._context.handle, node_name, namespace or '', cli_args, use_global_arguments,
                enable_rosout)
        except _native.InvalidNameError as error:
            exception = (
                InvalidNamespaceException if error.kind == 'namespace'
                else InvalidNodeNameException)
            raise exception(error.name, error.message, error.index) from None
        except _native.NotInitializedError as error:
            raise NotInitializedException('cannot create node') from error
        self._logger = get_logger(self.__handle.logger_name())
        self._parameter_event_publisher = self.create_publisher(
            ParameterEvent, '/parameter_events', qos_profile_parameter_events)

        self._parameter_store = _native.ParameterStore(
            self.__handle, parameter_overrides or (), allow_undeclared_parameters,
            automatically_declare_parameters_from_overrides)
        self._clock: Clock = self._clock_class()
        self._parameter_store.declare_overrides(self)

        from rclpy.time_source import TimeSource
        self._time_source = TimeSource(node=self)
        self._time_source.attach_clock(self._clock)
        if start_parameter_services:
            from rclpy.parameter_service import ParameterService
            self._parameter_service = ParameterService(self)
        if enable_logger_service:
            from rclpy.logging_service import LoggingService
            self._logger_service = LoggingService(self)
        from rclpy.type_description_service import TypeDescriptionService
        self._type_description_service = TypeDescriptionService(self)

    # --- the node itself

    def __enter__(self) -> Node:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.destroy_node()

    @property
    def publishers(self) -> Iterator[Publisher]:
        """The publishers."""
        yield from list(self._publishers)

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """The subscriptions."""
        yield from list(self._subscriptions)

    @property
    def clients(self) -> Iterator[Client]:
        """The clients."""
        yield from list(self._clients)

    @property
    def services(self) -> Iterator[Service]:
        """The servers."""
        yield from list(self._services)

    @property
    def timers(self) -> Iterator[Timer]:
        """The timers."""
        yield from list(self._timers)

    @property
    def guards(self) -> Iterator[GuardCondition]:
        """The guard conditions."""
        yield from list(self._guards)

    @property
    def waitables(self) -> Iterator[Waitable]:
        """The waitables."""
        yield from list(self._waitables)

    @property
    def executor(self) -> Optional[Executor]:
        """The executor that the node was added to last; setting it adds the node."""
        reference = self.__executor_weakref
        return reference() if reference is not None else None

    @executor.setter
    def executor(self, new_executor: Optional[Executor]) -> None:
        current = self.executor
        if current is new_executor:
            return
        if current is not None:
            current.remove_node(self)
        if new_executor is None:
            self.__executor_weakref = None
            return
        self.__executor_weakref = weakref.ref(new_executor)
        new_executor.add_node(self)

    def _wake_executor(self) -> None:
        executor = self.executor
        if executor is not None:
            executor.wake()

    def _entities_changed(self) -> None:
        self._entities_version = next(_versions)
        self._wake_executor()

    @property
    def context(self) -> Context:
        """The context of the node."""
        return self._context

    @property
    def default_callback_group(self) -> CallbackGroup:
        """The callback group of entities that are created without one."""
        return self._default_callback_group

    @property
    def handle(self) -> Any:
        """The handle of the implementation."""
        return self.__handle

    @handle.setter
    def handle(self, value: Any) -> None:
        raise AttributeError('handle cannot be modified after node creation')

    def get_name(self) -> str:
        """Return the name, without namespace."""
        with self.handle:
            return self.handle.get_node_name()

    def get_namespace(self) -> str:
        """Return the namespace."""
        with self.handle:
            return self.handle.get_namespace()

    def get_fully_qualified_name(self) -> str:
        """Return the namespace and the name."""
        with self.handle:
            return self.handle.get_fully_qualified_name()

    def get_clock(self) -> Clock:
        """Return the clock, which shows ROS time."""
        return self._clock

    def get_logger(self) -> RcutilsLogger:
        """Return the logger of the node."""
        return self._logger

    # --- names

    def _validate_topic_or_service_name(
        self, topic_or_service_name: str, *, is_service: bool = False,
    ) -> None:
        name = self.get_name()
        namespace = self.get_namespace()
        validate_topic_name(topic_or_service_name, is_service=is_service)
        expanded = expand_topic_name(topic_or_service_name, name, namespace)
        validate_full_topic_name(expanded, is_service=is_service)

    def _validate_qos_or_depth_parameter(self, qos_or_depth: Union[QoSProfile, int]) -> QoSProfile:
        if isinstance(qos_or_depth, QoSProfile):
            return qos_or_depth
        if isinstance(qos_or_depth, int):
            if qos_or_depth < 0:
                raise ValueError('history depth must be greater than or equal to zero')
            return QoSProfile(depth=qos_or_depth)
        raise TypeError(f'Expected QoSProfile or int, but received {type(qos_or_depth)!r}')

    def resolve_topic_name(self, topic: str, *, only_expand: bool = False) -> str:
        """
        Return the full name of a topic, remapped unless ``only_expand``.

        :raises RCLError: if the name is invalid.
        """
        with self.handle:
            return self._resolve(topic, only_expand, is_service=False)

    def resolve_service_name(self, service: str, *, only_expand: bool = False) -> str:
        """
        Return the full name of a service, remapped unless ``only_expand``.

        :raises RCLError: if the name is invalid.
        """
        with self.handle:
            return self._resolve(service, only_expand, is_service=True)

    def _resolve(self, name: str, only_expand: bool, is_service: bool) -> str:
        try:
            return self.handle.resolve_name(name, only_expand, is_service)
        except _native.InvalidNameError as error:
            raise RCLError(f'failed to resolve name: {error.message}') from None

    # --- creating

    def create_publisher(
        self, msg_type: Any, topic: str, qos_profile: Union[QoSProfile, int], *,
        callback_group: Optional[CallbackGroup] = None,
        event_callbacks: Optional[PublisherEventCallbacks] = None,
        qos_overriding_options: Optional[QoSOverridingOptions] = None,
        publisher_class: Type[Publisher] = Publisher,
    ) -> Publisher:
        """
        Create a publisher.

        :param msg_type: The message class.
        :param topic: The topic.
        :param qos_profile: The policies, or the number of messages to keep.
        :param callback_group: The group of the event callbacks.
        :param event_callbacks: Callbacks of events.
        :param qos_overriding_options: Let parameters replace policies.
        :param publisher_class: The class of the publisher.
        :raises InvalidTopicNameException: if the topic name is invalid.
        """
        qos_profile = self._validate_qos_or_depth_parameter(qos_profile)
        callback_group = callback_group or self.default_callback_group
        final_topic = self._override_qos(
            Publisher, topic, qos_profile, qos_overriding_options)
        check_is_valid_msg_type(msg_type)
        try:
            with self.handle:
                implementation = _native.Publisher(
                    self.handle, msg_type, final_topic, _c_qos(qos_profile))
        except _native.InvalidNameError:
            self._validate_topic_or_service_name(topic)
            raise
        try:
            publisher = publisher_class(
                implementation, msg_type, topic, qos_profile,
                event_callbacks=event_callbacks or PublisherEventCallbacks(),
                callback_group=callback_group)
        except BaseException:
            implementation.destroy_when_not_in_use()
            raise
        publisher._logger_name = self._logger.name
        with self._entities_lock:
            self._publishers.append(publisher)
            self._waitables.extend(publisher.event_handlers)
        for handler in publisher.event_handlers:
            callback_group.add_entity(handler)
        self._entities_changed()
        return publisher

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., Any],
        qos_profile: Union[QoSProfile, int], *, callback_group: Optional[CallbackGroup] = None,
        event_callbacks: Optional[SubscriptionEventCallbacks] = None,
        qos_overriding_options: Optional[QoSOverridingOptions] = None,
        raw: Union[bool, type] = False,
        content_filter_options: Optional[ContentFilterOptions] = None,
    ) -> Subscription:
        """
        Create a subscription.

        :param msg_type: The message class.
        :param topic: The topic.
        :param callback: Gets each message, and its info if it takes two arguments.
        :param qos_profile: The policies, or the number of messages to keep.
        :param callback_group: The group of the callback.
        :param event_callbacks: Callbacks of events.
        :param qos_overriding_options: Let parameters replace policies.
        :param raw: Pass serialized messages to the callback, as ``bytes``. With ``memoryview``
            it gets a view of the memory where the message was received, without a copy.
        :param content_filter_options: Only messages that match it are received.
        :raises InvalidTopicNameException: if the topic name is invalid.
        """
        qos_profile = self._validate_qos_or_depth_parameter(qos_profile)
        callback_group = callback_group or self.default_callback_group
        final_topic = self._override_qos(
            Subscription, topic, qos_profile, qos_overriding_options)
        check_is_valid_msg_type(msg_type)
        filter_arguments: Tuple = ()
        if content_filter_options is not None:
            filter_arguments = (
                False, content_filter_options.filter_expression,
                list(content_filter_options.expression_parameters))
        try:
            with self.handle:
                implementation = _native.Subscription(
                    self.handle, msg_type, final_topic, _c_qos(qos_profile), *filter_arguments)
        except _native.InvalidNameError:
            self._validate_topic_or_service_name(topic)
            raise
        try:
            subscription = self._subscription_class(
                implementation, msg_type, topic, callback, callback_group, qos_profile, raw,
                event_callbacks=event_callbacks or SubscriptionEventCallbacks())
        except BaseException:
            implementation.destroy_when_not_in_use()
            raise
        subscription._logger_name = self._logger.name
        callback_group.add_entity(subscription)
        with self._entities_lock:
            self._subscriptions.append(subscription)
            self._waitables.extend(subscription.event_handlers)
        self._entities_changed()
        return subscription

    def _override_qos(
        self, entity_type: Any, topic: str, qos_profile: QoSProfile,
        options: Optional[QoSOverridingOptions],
    ) -> str:
        if options is None:
            return topic
        from rclpy.qos_overriding_options import _declare_qos_parameters
        final_topic = self.resolve_topic_name(topic)
        _declare_qos_parameters(entity_type, self, final_topic, qos_profile, options)
        return topic

    def create_client(
        self, srv_type: Any, srv_name: str, *,
        qos_profile: QoSProfile = qos_profile_services_default,
        callback_group: Optional[CallbackGroup] = None,
    ) -> Client:
        """
        Create a client of a service.

        :param srv_type: The service class.
        :param srv_name: The service.
        :param qos_profile: The policies.
        :param callback_group: The group in which responses are handled.
        :raises InvalidServiceNameException: if the service name is invalid.
        """
        callback_group = callback_group or self.default_callback_group
        check_is_valid_srv_type(srv_type)
        try:
            with self.handle:
                implementation = _native.Client(
                    self.handle, srv_type, srv_name, _c_qos(qos_profile))
        except _native.InvalidNameError:
            self._validate_topic_or_service_name(srv_name, is_service=True)
            raise
        client = self._client_class(
            self._context, implementation, srv_type, srv_name, qos_profile, callback_group)
        client._logger_name = self._logger.name
        callback_group.add_entity(client)
        with self._entities_lock:
            self._clients.append(client)
        self._entities_changed()
        return client

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Callable[[Any, Any], Any], *,
        qos_profile: QoSProfile = qos_profile_services_default,
        callback_group: Optional[CallbackGroup] = None,
    ) -> Service:
        """
        Create a server of a service.

        :param srv_type: The service class.
        :param srv_name: The service.
        :param callback: Gets the request and an empty response, and returns the response.
        :param qos_profile: The policies.
        :param callback_group: The group of the callback.
        :raises InvalidServiceNameException: if the service name is invalid.
        """
        callback_group = callback_group or self.default_callback_group
        check_is_valid_srv_type(srv_type)
        try:
            with self.handle:
                implementation = _native.Service(
                    self.handle, srv_type, srv_name, _c_qos(qos_profile))
        except _native.InvalidNameError:
            self._validate_topic_or_service_name(srv_name, is_service=True)
            raise
        service = self._service_class(
            implementation, srv_type, srv_name, callback, callback_group, qos_profile)
        service._logger_name = self._logger.name
        callback_group.add_entity(service)
        with self._entities_lock:
            self._services.append(service)
        self._entities_changed()
        return service

    def create_timer(
        self, timer_period_sec: float, callback: Optional[Callable[[], Any]],
        callback_group: Optional[CallbackGroup] = None, clock: Optional[Clock] = None,
        autostart: bool = True,
    ) -> Timer:
        """
        Create a timer.

        :param timer_period_sec: The period in seconds.
        :param callback: Called once a period, with a :class:`rclpy.timer.TimerInfo` if a
            parameter is annotated so.
        :param callback_group: The group of the callback.
        :param clock: The clock; ``None`` stands for the node's.
        :param autostart: Start now, not at the first ``reset``.
        :raises RCLError: if the period is negative.
        """
        period_ns = int(float(timer_period_sec) * S_TO_NS)
        if abs(period_ns) > _PERIOD_MAX_NS:
            raise TypeError(
                f'timer period {timer_period_sec} s is too long: use at most 292 years')
        callback_group = callback_group or self.default_callback_group
        timer = self._timer_class(
            callback, callback_group, period_ns, clock or self._clock, context=self._context,
            autostart=autostart)
        callback_group.add_entity(timer)
        with self._entities_lock:
            self._timers.append(timer)
        self._entities_changed()
        return timer

    def create_guard_condition(
        self, callback: Callable[[], Any], callback_group: Optional[CallbackGroup] = None,
    ) -> GuardCondition:
        """Create a guard condition, whose callback runs after its ``trigger``."""
        callback_group = callback_group or self.default_callback_group
        guard = GuardCondition(callback, callback_group, context=self._context)
        callback_group.add_entity(guard)
        with self._entities_lock:
            self._guards.append(guard)
        self._entities_changed()
        return guard

    def create_rate(self, frequency: float, clock: Optional[Clock] = None) -> Rate:
        """
        Create a rate, for sleeps in a thread that does not spin.

        :param frequency: Ends of sleep per second.
        :raises ValueError: if the frequency is not positive.
        """
        if frequency <= 0:
            raise ValueError(f'frequency must be > 0, got {frequency}')
        timer = self.create_timer(1.0 / frequency, None, self._rate_group, clock)
        return Rate(timer, context=self._context)

    def add_waitable(self, waitable: Waitable) -> None:
        """Add a waitable, such as a user's own one."""
        with self._entities_lock:
            self._waitables.append(waitable)
        self._entities_changed()

    def remove_waitable(self, waitable: Waitable) -> None:
        """Remove a waitable; ``ValueError`` if it is not there."""
        with self._entities_lock:
            self._waitables.remove(waitable)
        self._entities_changed()

    # --- destroying

    def _destroy(self, entities: List, entity: Any) -> bool:
        with self._entities_lock:
            if not any(each is entity for each in entities):
                return False
            entities[:] = [each for each in entities if each is not entity]
            handlers = getattr(entity, 'event_handlers', None)
            if handlers:
                self._waitables[:] = [
                    waitable for waitable in self._waitables if waitable not in handlers]
        try:
            entity.destroy()
        except _native.InvalidHandle:
            return False
        self._entities_changed()
        return True

    def destroy_publisher(self, publisher: Publisher) -> bool:
        """Destroy a publisher; ``False`` if it is not the node's."""
        return self._destroy(self._publishers, publisher)

    def destroy_subscription(self, subscription: Subscription) -> bool:
        """Destroy a subscription; ``False`` if it is not the node's."""
        return self._destroy(self._subscriptions, subscription)

    def destroy_client(self, client: Client) -> bool:
        """Destroy a client; ``False`` if it is not the node's."""
        return self._destroy(self._clients, client)

    def destroy_service(self, service: Service) -> bool:
        """Destroy a server; ``False`` if it is not the node's."""
        return self._destroy(self._services, service)

    def destroy_timer(self, timer: Timer) -> bool:
        """Destroy a timer; ``False`` if it is not the node's."""
        return self._destroy(self._timers, timer)

    def destroy_guard_condition(self, guard: GuardCondition) -> bool:
        """Destroy a guard condition; ``False`` if it is not the node's."""
        return self._destroy(self._guards, guard)

    def destroy_rate(self, rate: Rate) -> bool:
        """Destroy a rate and wake its sleepers; ``False`` if it is not the node's."""
        success = False
        with self._entities_lock:
            if any(timer is rate._timer for timer in self._timers):
                self._timers[:] = [each for each in self._timers if each is not rate._timer]
                success = True
        rate.destroy()
        self._entities_changed()
        return success

    def destroy_node(self) -> None:
        """
        Destroy the node and everything that it owns.

        Entities that callbacks use now are destroyed after them.
        """
        self._type_description_service.destroy()
        self._time_source.detach_node()
        for entities, destroy in (
                (self._publishers, self.destroy_publisher),
                (self._subscriptions, self.destroy_subscription),
                (self._clients, self.destroy_client), (self._services, self.destroy_service),
                (self._timers, self.destroy_timer),
                (self._guards, self.destroy_guard_condition)):
            while entities:
                destroy(entities[0])  # type: ignore[operator]
        self.__handle.destroy_when_not_in_use()
        self._entities_changed()

    # --- the graph

    def get_publisher_names_and_types_by_node(
        self, node_name: str, node_namespace: str, no_demangle: bool = False,
    ) -> NamesAndTypes:
        """
        Return the topics that a node publishes, with their types.

        :raises NodeNameNonExistentError: if there is no such node.
        """
        with self.handle:
            return self.handle.names_and_types_by_node(
                'publisher', node_name, node_namespace, no_demangle)

    def get_subscriber_names_and_types_by_node(
        self, node_name: str, node_namespace: str, no_demangle: bool = False,
    ) -> NamesAndTypes:
        """
        Return the topics that a node subscribes to, with their types.

        :raises NodeNameNonExistentError: if there is no such node.
        """
        with self.handle:
            return self.handle.names_and_types_by_node(
                'subscription', node_name, node_namespace, no_demangle)

    def get_service_names_and_types_by_node(
        self, node_name: str, node_namespace: str,
    ) -> NamesAndTypes:
        """
        Return the services that a node serves, with their types.

        :raises NodeNameNonExistentError: if there is no such node.
        """
        with self.handle:
            return self.handle.names_and_types_by_node('service', node_name, node_namespace)

    def get_client_names_and_types_by_node(
        self, node_name: str, node_namespace: str,
    ) -> NamesAndTypes:
        """
        Return the services that a node has clients of, with their types.

        :raises NodeNameNonExistentError: if there is no such node.
        """
        with self.handle:
            return self.handle.names_and_types_by_node('client', node_name, node_namespace)

    def get_topic_names_and_types(self, no_demangle: bool = False) -> NamesAndTypes:
        """Return all topics with their types; with ``no_demangle`` as they are on the wire."""
        with self.handle:
            return self.handle.get_topic_names_and_types(no_demangle)

    def get_service_names_and_types(self) -> NamesAndTypes:
        """Return all services with their types."""
        with self.handle:
            return self.handle.get_service_names_and_types()

    def get_node_names(self) -> List[str]:
        """Return the names of all nodes, without namespaces."""
        return [name for name, _ in self.get_node_names_and_namespaces()]

    def get_fully_qualified_node_names(self) -> List[str]:
        """Return the names of all nodes, with namespaces."""
        return [
            namespace + ('' if namespace.endswith('/') else '/') + name
            for name, namespace in self.get_node_names_and_namespaces()]

    def get_node_names_and_namespaces(self) -> List[Tuple[str, str]]:
        """Return the names and namespaces of all nodes."""
        with self.handle:
            return self.handle.get_node_names_and_namespaces()

    def get_node_names_and_namespaces_with_enclaves(self) -> List[Tuple[str, str, str]]:
        """Return the names, namespaces and enclaves of all nodes."""
        with self.handle:
            return self.handle.get_node_names_and_namespaces_with_enclaves()

    def _count(self, role: str, name: str) -> int:
        full_name = expand_topic_name(name, self.get_name(), self.get_namespace())
        validate_full_topic_name(full_name)
        with self.handle:
            return self.handle.count_endpoints(role, full_name)

    def count_publishers(self, topic_name: str) -> int:
        """Return how many publishers a topic has. Its name is not remapped."""
        return self._count('publisher', topic_name)

    def count_subscribers(self, topic_name: str) -> int:
        """Return how many subscriptions a topic has. Its name is not remapped."""
        return self._count('subscription', topic_name)

    def count_clients(self, service_name: str) -> int:
        """Return how many clients a service has. Its name is not remapped."""
        return self._count('client', service_name)

    def count_services(self, service_name: str) -> int:
        """Return how many servers a service has. Its name is not remapped."""
        return self._count('service', service_name)

    def _get_info_by_topic(
        self, publishers: bool, topic_name: str, no_mangle: bool,
    ) -> List[TopicEndpointInfo]:
        if not isinstance(topic_name, str):
            raise TypeError(f'topic_name must be a str, got {type(topic_name).__name__}')
        full_name = topic_name
        if not no_mangle:
            full_name = expand_topic_name(topic_name, self.get_name(), self.get_namespace())
            validate_full_topic_name(full_name)
            full_name = _native.remap_topic_name(self.handle, full_name)
        with self.handle:
            found = self.handle.info_by_topic(publishers, full_name, no_mangle)
            return [TopicEndpointInfo(**info) for info in found]

    def get_publishers_info_by_topic(
        self, topic_name: str, no_mangle: bool = False,
    ) -> List[TopicEndpointInfo]:
        """Return the publishers of a topic; with ``no_mangle`` of a topic of DDS."""
        return self._get_info_by_topic(True, topic_name, no_mangle)

    def get_subscriptions_info_by_topic(
        self, topic_name: str, no_mangle: bool = False,
    ) -> List[TopicEndpointInfo]:
        """Return the subscriptions of a topic; with ``no_mangle`` of a topic of DDS."""
        return self._get_info_by_topic(False, topic_name, no_mangle)

    def wait_for_node(self, fully_qualified_node_name: str, timeout: float) -> bool:
        """
        Wait until a node is in the graph.

        :param fully_qualified_node_name: Its namespace and name.
        :param timeout: Longest wait in seconds.
        :returns: whether it is there.
        """
        if not fully_qualified_node_name.startswith('/'):
            fully_qualified_node_name = '/' + fully_qualified_node_name
        deadline = time.monotonic() + timeout
        while True:
            if fully_qualified_node_name in self.get_fully_qualified_node_names():
                return True
            left = deadline - time.monotonic()
            if left <= 0 or not self._context.ok():
                return False
            time.sleep(min(left, 0.02))


def _c_qos(profile: QoSProfile) -> Any:
    try:
        return _native.rmw_qos_profile_t(*profile._native())
    except OverflowError:
        raise TypeError(f'history depth {profile.depth} is too large') from None
