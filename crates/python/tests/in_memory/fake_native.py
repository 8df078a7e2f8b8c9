"""
An in-memory stand-in for `pteros._native`, for tests of rclpy that need no middleware.

It implements the interface of `_native.pyi` within one process: messages go from a publisher's
`publish` straight into the queues of the subscriptions. Serialization is a pickle. A call of
`install` puts it in the place of the native module.
"""

import json
import pickle
import re
import sys
import threading
import time
from collections import deque

DURATION_INFINITE = (1 << 63) - 1
DURATION_BEST_AVAILABLE = DURATION_INFINITE - 1
__version__ = 'fake'

_changed = threading.Condition(threading.RLock())
_nodes = []
_publishers = []
_subscriptions = []
_services = []
_clients = []
_levels = {}
lines = []
"""The lines that were logged: (logger, severity, message)."""


class RCLError(RuntimeError):
    pass


class NodeNameNonExistentError(RCLError):
    pass


class UnsupportedEventTypeError(RCLError):
    pass


class RCLInvalidROSArgsError(RCLError):
    pass


class UnknownROSArgsError(RCLError):
    pass


class InvalidHandle(RuntimeError):
    pass


class NotInitializedError(RuntimeError):
    pass


class InvalidNameError(ValueError):
    def __init__(self, kind, name, message, index):
        super().__init__(f'{kind} name {name!r} is invalid: {message}')
        self.kind, self.name, self.message, self.index = kind, name, message, index


class rmw_qos_profile_t:
    _names = (
        'history', 'depth', 'reliability', 'durability', 'lifespan', 'deadline', 'liveliness',
        'liveliness_lease_duration', 'avoid_ros_namespace_conventions')

    def __init__(self, history=1, depth=10, reliability=1, durability=2, lifespan=0, deadline=0,
                 liveliness=0, liveliness_lease_duration=0,
                 avoid_ros_namespace_conventions=False):
        values = locals()
        for name in self._names:
            setattr(self, name, values[name])

    def to_dict(self):
        return {name: getattr(self, name) for name in self._names}


class Handle:
    _users = 0
    _doomed = False
    is_destroyed = False

    def __enter__(self):
        with _changed:
            if self._doomed:
                raise InvalidHandle('cannot use Destroyable because destruction was requested')
            self._users += 1

    def __exit__(self, *_):
        with _changed:
            self._users -= 1
            if self._doomed and self._users == 0:
                self._destroy()

    def destroy_when_not_in_use(self):
        with _changed:
            self._doomed = True
            if self._users == 0 and not self.is_destroyed:
                self._destroy()

    def _destroy(self):
        self.is_destroyed = True
        self._leave()
        _changed.notify_all()

    def _leave(self):
        pass

    def _alive(self):
        if self.is_destroyed:
            raise InvalidHandle('the entity was destroyed')

    @property
    def pointer(self):
        self._alive()
        return id(self)


class Context(Handle):
    def __init__(self, args=(), domain_id=None):
        self._ok = True
        self._domain_id = domain_id or 0

    def ok(self):
        return self._ok and not self.is_destroyed

    def shutdown(self):
        self._alive()
        with _changed:
            if not self._ok:
                raise RCLError('context is shut down already')
            self._ok = False
            _changed.notify_all()

    def get_domain_id(self):
        return self._domain_id


def remove_ros_args(args):
    args = list(args)
    return args[:args.index('--ros-args')] if '--ros-args' in args else args


_options = 0


def install_signal_handlers(options=3):
    global _options
    _options = options


def uninstall_signal_handlers():
    install_signal_handlers(0)


def get_current_signal_handlers_options():
    return _options


def register_sigint_guard_condition(guard):
    pass


unregister_sigint_guard_condition = register_sigint_guard_condition


class Node(Handle):
    def __init__(self, context, name, namespace='', args=None, use_global_arguments=True,
                 enable_rosout=True):
        if not context.ok():
            raise NotInitializedError()
        namespace = '/' + namespace.strip('/')
        for kind, text, check in (
                ('node', name, validate_node_name), ('namespace', namespace, validate_namespace)):
            wrong = check(text)
            if wrong:
                raise InvalidNameError(kind, text, *wrong)
        self._name, self._namespace = name, namespace
        _nodes.append(self)

    def _leave(self):
        _nodes.remove(self)

    def get_node_name(self):
        return self._name

    def get_namespace(self):
        return self._namespace

    def get_fully_qualified_name(self):
        return self._namespace.rstrip('/') + '/' + self._name

    def logger_name(self):
        return self.get_fully_qualified_name()[1:].replace('/', '.')

    def resolve_name(self, name, only_expand=False, is_service=False):
        return expand_topic_name(name, self._name, self._namespace)

    def count_endpoints(self, role, name):
        endpoints = {
            'publisher': _publishers, 'subscription': _subscriptions, 'client': _clients,
            'service': _services}
        return sum(each.topic == name for each in endpoints[role])

    def get_node_names_and_namespaces(self):
        return [(each._name, each._namespace) for each in _nodes]

    def get_service_names_and_types(self):
        return [(each.topic, [get_type_name(each.kind)]) for each in _services]


class Entity(Handle):
    registry = None

    def __init__(self, node, kind, topic, qos):
        wrong = validate_topic_name(topic)
        if wrong:
            raise InvalidNameError('topic', topic, *wrong)
        self.topic = node.resolve_name(topic)
        self.kind, self.queue, self.qos = kind, deque(), qos
        with _changed:
            self.registry.append(self)

    def _leave(self):
        self.registry.remove(self)

    def is_ready(self):
        return bool(self.queue)

    def _put(self, item):
        with _changed:
            self.queue.append(item)
            _changed.notify_all()

    def _get(self):
        self._alive()
        with _changed:
            return self.queue.popleft() if self.queue else None

    def get_topic_name(self):
        return self.topic

    get_service_name = get_topic_name


class Publisher(Entity):
    registry = _publishers

    def publish(self, message):
        self._alive()
        for subscription in list(_subscriptions):
            if subscription.topic == self.topic:
                subscription._put(pickle.dumps(message))

    def publish_raw(self, payload):
        self.publish(pickle.loads(payload))

    def get_subscription_count(self):
        return sum(each.topic == self.topic for each in _subscriptions)

    def assert_liveliness(self):
        pass

    def wait_for_all_acked(self, timeout_ns=-1):
        return True


class MessageInfo:
    def to_dict(self):
        return {'source_timestamp': 1, 'received_timestamp': 2,
                'publication_sequence_number': None, 'reception_sequence_number': None}


class Subscription(Entity):
    registry = _subscriptions

    def __init__(self, node, kind, topic, qos, *filter_arguments):
        super().__init__(node, kind, topic, qos)

    def take(self):
        data = self._get()
        return None if data is None else (pickle.loads(data), MessageInfo())

    def take_arguments(self, executor):
        data = self._get()
        return None if data is None else (pickle.loads(data),)

    def take_raw(self):
        data = self._get()
        return None if data is None else (data, MessageInfo())

    def get_publisher_count(self):
        return sum(each.topic == self.topic for each in _publishers)


class RequestId:
    def __init__(self, client, number):
        self.client, self.sequence_number = client, number


class Client(Entity):
    registry = _clients
    _number = 0

    def send_request(self, request):
        self._alive()
        with _changed:
            self._number += 1
            for service in _services:
                if service.topic == self.topic:
                    service._put((pickle.dumps(request), RequestId(self, self._number)))
            return self._number

    def take_response(self):
        item = self._get()
        return None if item is None else (item[0], pickle.loads(item[1]))

    def forget_request(self, number):
        pass

    def service_server_is_available(self):
        return any(each.topic == self.topic for each in _services)


class Service(Entity):
    registry = _services

    def take_request(self):
        item = self._get()
        return None if item is None else (pickle.loads(item[0]), item[1])

    def send_response(self, response, header):
        header.client._put((header, pickle.dumps(response)))


class GuardCondition(Handle):
    def __init__(self, context):
        self._triggered = False

    def trigger_guard_condition(self):
        with _changed:
            self._triggered = True
            _changed.notify_all()

    def is_triggered(self):
        return self._triggered

    is_ready = is_triggered


class EventHandle(Handle):
    def __init__(self, entity, kind):
        if kind == 3 and isinstance(entity, Subscription):
            raise UnsupportedEventTypeError('message lost')

    def is_ready(self):
        return False

    def take_event(self):
        return None


class Clock(Handle):
    def __init__(self, clock_type):
        self.clock_type = clock_type
        self._enabled, self._time, self._callbacks = False, 0, {}

    def now(self):
        if self._enabled:
            return self._time
        return time.monotonic_ns() if self.clock_type == 3 else time.time_ns()

    def get_ros_time_override_is_enabled(self):
        return self._enabled

    def _jump(self, change, delta, apply):
        called = [
            each for each in self._callbacks.values()
            if (each[2] if change in (2, 3) else (each[3] and delta >= each[3])
                or (each[4] and delta <= each[4]))]
        for each in called:
            if each[0]:
                each[0]()
        apply()
        for each in called:
            if each[1]:
                each[1]({'clock_change': change, 'delta': delta})
        with _changed:
            _changed.notify_all()

    def set_ros_time_override_is_enabled(self, enabled):
        if enabled != self._enabled:
            self._jump(2 if enabled else 3, 0, lambda: setattr(self, '_enabled', enabled))

    def set_ros_time_override(self, nanoseconds):
        if not self._enabled:
            self._time = nanoseconds
            return
        self._jump(1, nanoseconds - self._time, lambda: setattr(self, '_time', nanoseconds))

    def add_clock_callback(self, *args):
        self._callbacks[len(self._callbacks)] = args
        return len(self._callbacks) - 1

    def remove_clock_callback(self, callback_id):
        del self._callbacks[callback_id]

    def sleep_until(self, until_ns, context):
        enabled = self._enabled
        with _changed:
            while context.ok() and self._enabled == enabled and self.now() < until_ns:
                left = (until_ns - self.now()) / 1e9
                _changed.wait(None if self._enabled else left)
        return context.ok() and self._enabled == enabled


class Timer(Handle):
    def __init__(self, clock, context, period_ns, autostart=True):
        self._clock, self._period, self._canceled = clock, period_ns, not autostart
        self._last = clock.now()
        self._next = self._last + period_ns

    def time_until_next_call(self):
        return None if self._canceled else self._next - self._clock.now()

    def is_ready(self):
        return not self._canceled and self._clock.now() >= self._next

    def take_due(self, executor):
        if not self.is_ready():
            return None
        self.call_timer()
        return ()

    def take_due_with_info(self):
        if not self.is_ready():
            return None
        expected = self._next
        self.call_timer()
        return expected, self._last

    def call_timer(self):
        if self._canceled:
            raise RCLError('timer is canceled')
        now = self._clock.now()
        self._last = now
        self._next += self._period
        if self._next < now and self._period:
            self._next += (now - self._next) // self._period * self._period + self._period

    def cancel_timer(self):
        self._canceled = True

    def reset_timer(self):
        self._canceled = False
        self._next = self._clock.now() + self._period

    def is_timer_canceled(self):
        return self._canceled

    def time_since_last_call(self):
        return self._clock.now() - self._last

    def get_timer_period(self):
        return self._period

    def change_timer_period(self, period_ns):
        self._period = period_ns


class GroupLock:
    def __init__(self):
        self._lock = threading.Lock()
        self.locked, self.release = self._lock.locked, self._lock.release

    def acquire(self):
        return self._lock.acquire(False)


class Poller:
    def __init__(self, context):
        self._context, self._entities, self._woken, self._closed = context, [], False, False

    def add(self, entity):
        entity._alive()
        with _changed:
            if entity not in self._entities:
                self._entities.append(entity)
            _changed.notify_all()

    def remove(self, entity):
        with _changed:
            if entity in self._entities:
                self._entities.remove(entity)

    def set_entities(self, entities):
        entities = list(entities)
        for entity in entities:
            entity._alive()
        with _changed:
            self._entities = entities

    def clear(self):
        self.set_entities([])

    def wait(self, timeout_ns=None):
        deadline = None
        if timeout_ns is not None and timeout_ns >= 0:
            deadline = time.monotonic_ns() + timeout_ns
        with _changed:
            while True:
                ready = []
                left = None if deadline is None else deadline - time.monotonic_ns()
                for entity in self._entities:
                    if entity.is_destroyed:
                        continue
                    if entity.is_ready():
                        ready.append(entity)
                        if isinstance(entity, GuardCondition):
                            entity._triggered = False
                    elif isinstance(entity, Timer) and not entity._clock._enabled:
                        until = entity.time_until_next_call()
                        if until is not None:
                            left = until if left is None else min(left, until)
                expired = deadline is not None and deadline <= time.monotonic_ns()
                if ready or self._woken or self._closed or not self._context.ok() or expired:
                    self._woken = False
                    return ready
                _changed.wait(None if left is None else max(left, 0) / 1e9)

    def spin_once(self, executor, timeout_ns=None):
        # The executor's own turn does it.
        return None if self._context.ok() and not self._closed else False

    def spin(self, executor):
        while self._context.ok() and not self._closed and not executor._is_stale:
            found = self.wait()
            if not found and (self._closed or not self._context.ok()):
                return False
            entries = [executor._entries[handle] for handle in found if handle in executor._entries]
            while entries:
                entry = entries.pop(0)
                try:
                    args = executor._begin(entry)
                    result = None if args is None else entry.call(*args)
                except BaseException:
                    if args is not None:
                        executor._end(entry)
                    executor._ready.extend(entries)
                    raise
                if hasattr(result, 'send') and hasattr(result, '__await__'):
                    executor._ready.extend(entries)
                    return entry, result
                if args is not None:
                    executor._end(entry)
                if executor._is_stale or executor._blocked:
                    executor._ready.extend(entries)
                    return None
        return None

    def wake(self):
        with _changed:
            self._woken = True
            _changed.notify_all()

    def close(self):
        with _changed:
            self._closed = True
            _changed.notify_all()


def graph_guard_condition(node):
    return GuardCondition(None)


def _is(cls, attribute):
    return isinstance(cls, type) and hasattr(cls, attribute)


def is_message_class(cls):
    return _is(cls, '_fields_and_field_types')


def is_service_class(cls):
    return _is(cls, 'Request') and _is(cls, 'Response')


def is_action_class(cls):
    return _is(cls, 'Goal')


def get_type_name(cls):
    package, kind, *_ = cls.__module__.split('.')
    return f'{package}/{kind}/{cls.__name__}'


def serialize_message(message):
    return pickle.dumps(message)


def deserialize_message(payload, cls):
    return pickle.loads(payload)


def get_type_description(node, type_name, type_hash, include_sources):
    from type_description_interfaces.srv import GetTypeDescription
    return GetTypeDescription.Response(successful=True)


def _check(name, pattern):
    match = re.match(pattern, name)
    if match and match.end() == len(name):
        return None
    return 'must not contain characters other than alphanumerics and underscores', (
        match.end() if match else 0)


def validate_topic_name(name, is_service=False):
    return _check(name, r'~?/?[A-Za-z_{}][A-Za-z0-9_{}]*(/[A-Za-z_{}][A-Za-z0-9_{}]*)*|~')


def validate_full_topic_name(name, is_service=False):
    return _check(name, r'(/[A-Za-z_][A-Za-z0-9_]*)+')


def validate_node_name(name):
    return _check(name, r'[A-Za-z_][A-Za-z0-9_]*')


def validate_namespace(name):
    return None if name == '/' else _check(name, r'(/[A-Za-z_][A-Za-z0-9_]*)+')


def expand_topic_name(topic, node_name, namespace):
    if topic.startswith('~'):
        return namespace.rstrip('/') + '/' + node_name + topic[1:]
    return topic if topic.startswith('/') else namespace.rstrip('/') + '/' + topic


def remap_topic_name(node, topic):
    return topic


def load_yaml(text):
    """YAML as far as it is JSON, in either quotes."""
    return json.loads(text.replace("'", '"'))


def parse_parameter_file(path, node_name=None, use_wildcard=False):
    return {}


def log(name, severity, message, function='', file='', line=0):
    lines.append((name, severity, message))


def set_logger_level(name, level):
    _levels[name] = level


def get_logger_level(name):
    return _levels.get(name, 0)


def get_logger_effective_level(name):
    while name:
        if _levels.get(name):
            return _levels[name]
        name = name.rpartition('.')[0]
    return _levels.get('', 20)


def is_logger_enabled_for(name, severity):
    return severity >= get_logger_effective_level(name)


def get_logging_directory():
    return '/tmp'


def configure_logging(context):
    pass


def get_rmw_implementation_identifier():
    return 'rmw_pteros_cpp'


def install():
    """Put this module in the place of the native one."""
    import pteros
    pteros._native = sys.modules[__name__]
    sys.modules['pteros._native'] = sys.modules[__name__]


