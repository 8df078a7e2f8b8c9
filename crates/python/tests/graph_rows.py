"""The rows of steps of the behaviour tables on nodes of rclpy; see `test_behaviour.py`."""

import contextlib
import copy
import functools
import gc

from example_interfaces.srv import AddTwoInts
from rcl_interfaces.msg import SetParametersResult
from rclpy.client import Client
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.executors import SingleThreadedExecutor
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, qos_profile_best_available, QoSPolicyKind,
    QoSProfile, ReliabilityPolicy,
)
from rclpy.qos_overriding_options import InvalidQosOverridesError, QoSOverridingOptions
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from std_msgs.msg import String

try:
    from rclpy.subscription_content_filter_options import ContentFilterOptions
except ImportError:
    # rclpy of Jazzy has no content filters.
    ContentFilterOptions = None

RCLError, WaitSet = rclpy_implementation.RCLError, rclpy_implementation.WaitSet

_OF_EVERY_NODE = {'/parameter_events', '/rosout'}


# ROS 2's rclpy never destroys the service for type descriptions, which keeps the context.
WITHOUT_TYPE_DESCRIPTIONS = [Parameter('start_type_description_service', value=False)]


class Graph:
    """Nodes in one context, on which the steps of a row run."""

    def __init__(self):
        self.contexts, self.executors, self.nodes = [], [], []
        self.entities, self.statuses, self.taken = [], [], {}
        self.profiles, self.overrides, self.requests = {}, [], {}
        self.add_context('rows')

    def close(self):
        for executor in self.executors:
            executor.shutdown()
        for node in self.nodes:
            node.destroy_node()
        for context in self.contexts:
            context.try_shutdown()
        # Contexts of ROS 2's rclpy have their descriptors until they are collected.
        gc.collect()

    def add_context(self, name):
        self.context = Context()
        self.context.init([])
        self.contexts.append(self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executors.append(self.executor)
        self.add_node('/', name)

    def add_node(self, namespace, name):
        self.node = Node(
            name, namespace=namespace, context=self.context, enable_rosout=False,
            cli_args=['--ros-args', *self.overrides], start_parameter_services=False,
            parameter_overrides=WITHOUT_TYPE_DESCRIPTIONS)
        self.overrides = []
        self.nodes.append(self.node)
        self.executor.add_node(self.node)

    def play(self, step):
        kind, *words = step.split()
        if kind in ('node', 'context', 'request', 'respond', 'trigger', 'get'):
            getattr(self, f'add_{kind}' if kind in ('node', 'context') else f'_{kind}')(*words)
        elif kind in ('filter', 'wait'):
            self.answer(step)
        elif kind == 'override':
            self.overrides += ['-p', 'qos_overrides.' + words[0]]
        elif kind == 'drop':
            self.drop(int(words[0]) - 1)
        elif kind == 'send':
            self.entities[int(words[0]) - 1][0].publish(String(data=words[1]))
        else:
            self.statuses.append({})
            try:
                entity = getattr(self, kind)(*words[:1], self.statuses[-1], *words[1:])
            except InvalidParameterTypeException:
                entity = 'wrong type'
            except (InvalidQosOverridesError, RCLError, RuntimeError):
                entity = 'refused'
            self.entities.append((entity, self.node))

    def drop(self, at):
        entity, node = self.entities[at]
        kind = {
            Publisher: 'publisher', Subscription: 'subscription', Client: 'client',
            Service: 'service'}[type(entity)]
        assert getattr(node, f'destroy_{kind}')(entity)

    def pub(self, topic, status, *words):
        callbacks = PublisherEventCallbacks(
            use_default_callbacks=False, **_status_callbacks(status, 'matched', 'incompatible_qos'))
        profile, options = self.profile(words)
        return self.node.create_publisher(
            String, topic, profile, event_callbacks=callbacks, qos_overriding_options=options)

    def sub(self, topic, status, *words):
        callbacks = SubscriptionEventCallbacks(use_default_callbacks=False, **_status_callbacks(
            status, 'matched', 'incompatible_qos', 'liveliness'))
        # A message that the executor takes is kept, too.
        at, self.taken[len(self.entities)] = len(self.entities), []
        words, _, condition = ' '.join(words).partition('where ')
        profile, options = self.profile(words.split())
        condition = {'content_filter_options': ContentFilterOptions(*_filter(condition.split()))
                     } if condition else {}
        return self.node.create_subscription(
            String, topic, lambda message: self.taken[at].append(message.data), profile,
            event_callbacks=callbacks, qos_overriding_options=options, **condition)

    def profile(self, words):
        options = dict(word.partition('=')[::2] for word in words)
        allow = options.pop('allow', '').replace('default', 'history,depth,reliability')
        ending, refuses = options.pop('id', None), 'refuse' in options
        profile = self.profiles[len(self.entities)] = _profile([
            word for word in words if word.partition('=')[0] not in ('allow', 'id', 'refuse')])
        return profile, QoSOverridingOptions(
            [QoSPolicyKind[policy.upper()] for policy in allow.split(',') if policy],
            callback=lambda _: SetParametersResult(successful=not refuses), entity_id=ending)

    def guard(self, *_):
        return self.node.create_guard_condition(lambda: None)

    def timer(self, seconds, *_):
        return self.node.create_timer(float(seconds), lambda: None)

    def _trigger(self, number):
        self.entity(number).trigger()

    def _request(self, number):
        self.entity(number).call_async(AddTwoInts.Request())

    def _get(self, number):
        entity = self.entity(number)
        with entity.handle:
            if isinstance(entity, Subscription):
                message, _ = entity.handle.take_message(String, False)
                self.taken[int(number) - 1].append(message.data)
            elif isinstance(entity, Service):
                _, header = entity.handle.service_take_request(AddTwoInts.Request)
                self.requests[number] = header
            else:
                of_type = () if ContentFilterOptions else (AddTwoInts.Response,)
                assert entity.handle.take_response(*of_type)[0] is not None

    def _respond(self, number):
        self.entity(number).send_response(AddTwoInts.Response(), self.requests.pop(number))

    def server(self, name, _):
        return self.node.create_service(AddTwoInts, name, lambda _, response: response)

    def client(self, name, _):
        return self.node.create_client(AddTwoInts, name)

    def answer(self, step):
        kind, *words = step.split()
        if kind in ('filter', 'wait'):
            return getattr(self, 'ask_' + kind)(*words) or '-'
        for executor in self.executors:
            for _ in range(3 * len(self.entities) + 3):
                executor.spin_once(timeout_sec=0)
        return getattr(self, 'ask_' + kind)(*words) or '-'

    def entity(self, number):
        return self.entities[int(number) - 1][0]

    def ask_count(self, kind, name):
        method = {
            'publishers': 'count_publishers', 'subscriptions': 'count_subscribers',
            'servers': 'count_services', 'clients': 'count_clients'}[kind]
        return str(getattr(self.node, method)(name))

    def ask_available(self, number):
        return 'yes' if self.entity(number).service_is_ready() else 'no'

    def ask_matched(self, number):
        entity = self.entity(number)
        return str(
            entity.get_subscription_count() if isinstance(entity, Publisher)
            else entity.get_publisher_count())

    def ask_take(self, number):
        return ' '.join(self.taken[int(number) - 1])

    def ask_profile(self, number):
        entity = self.entity(number)
        return entity if isinstance(entity, str) else _changes(self.profiles[int(number) - 1])

    def ask_parameters(self):
        parameters = {
            name: self.node.get_parameter(name).value
            for name in self.node.list_parameters(['qos_overrides'], 10).names}
        return ' '.join(sorted(
            f'{name.removeprefix("qos_overrides.")}={str(value).lower()}'
            for name, value in parameters.items()))

    def ask_filter(self, number, *words):
        try:
            self.entity(number).set_content_filter(*_filter(words))
        except RCLError:
            return 'refused'
        return 'ok'

    def ask_filtered(self, number):
        entity = self.entity(number)
        return entity if isinstance(entity, str) else 'yes' if entity.is_cft_enabled else 'no'

    def ask_wait(self, timeout, *numbers):
        entities = [self.entity(number) for number in numbers]
        kinds = [{
            Subscription: 'subscription', GuardCondition: 'guard_condition', Timer: 'timer',
            Client: 'client', Service: 'service'}[type(entity)] for entity in entities]
        sizes = [kinds.count(kind) for kind in (
            'subscription', 'guard_condition', 'timer', 'client', 'service')]
        with contextlib.ExitStack() as stack:
            for entity in entities:
                stack.enter_context(entity.handle)
            wait_set = WaitSet(*sizes, 0, self.context.handle)
            stack.enter_context(wait_set)
            wait_set.clear_entities()
            places = [
                getattr(wait_set, 'add_' + kind)(entity.handle)
                for kind, entity in zip(kinds, entities)]
            wait_set.wait(int(float(timeout) * 1e9))
            return ' '.join(
                number for number, kind, place in zip(numbers, kinds, places)
                if wait_set.is_ready(kind, place))

    def ask_qos(self, kind, topic):
        infos = getattr(self.node, f'get_{kind}_info_by_topic')(topic)
        return ', '.join(sorted(map(_endpoint, infos)))

    def ask_names(self, kind, node):
        method = {
            'publishers': 'publisher', 'subscriptions': 'subscriber', 'servers': 'service',
            'clients': 'client'}[kind]
        namespace, _, name = node.rpartition('/')
        method = getattr(self.node, f'get_{method}_names_and_types_by_node')
        try:
            return self.shown(method(name, namespace or '/'))
        except NodeNameNonExistentError:
            return 'no such node'

    def ask_topics(self):
        return self.shown(self.node.get_topic_names_and_types())

    def ask_services(self):
        return self.shown(self.node.get_service_names_and_types())

    def shown(self, names):
        return ' '.join(sorted({
            name for name, _ in names
            if name not in _OF_EVERY_NODE and not name.endswith('/get_type_description')}))

    def ask_event(self, number, kind):
        found = self.statuses[int(number) - 1].get(
            'incompatible_qos' if kind == 'incompatible' else kind)
        if found is None:
            return ''
        return {
            'matched': lambda: f'{found.total_count} {found.current_count}',
            'incompatible': lambda: f'{found.total_count} ' + QoSPolicyKind(
                found.last_policy_kind).name.lower(),
            'liveliness': lambda: f'{found.alive_count} {found.not_alive_count}',
        }[kind]()


def _status_callbacks(status, *kinds):
    return {kind: functools.partial(status.__setitem__, kind) for kind in kinds}


def _profile(words):
    profile = QoSProfile(
        depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
    for word in words:
        name, _, value = word.partition('=')
        if name == 'depth':
            profile.depth = int(value)
        elif name in ('deadline', 'lifespan'):
            setattr(profile, name, Duration(seconds=int(value)))
        elif name == 'lease':
            profile.liveliness_lease_duration = Duration(seconds=int(value))
        elif name == 'manual':
            profile.liveliness = LivelinessPolicy.MANUAL_BY_TOPIC
        elif name == 'keep_all':
            profile.history = HistoryPolicy.KEEP_ALL
        elif name == 'best_available':
            profile = copy.copy(qos_profile_best_available)
        elif name == 'best_effort':
            profile.reliability = ReliabilityPolicy.BEST_EFFORT
        else:
            profile.durability = DurabilityPolicy[name.upper()]
    return profile


def _filter(words):
    expression, _, parameters = ' '.join(words).partition(' with ')
    return '' if expression == '-' else expression, parameters.split()


def _changes(profile):
    keeps_all = profile.history == HistoryPolicy.KEEP_ALL
    words = ['keep_all'] if keeps_all else [f'depth={profile.depth}'] * (profile.depth != 10)
    words += [
        value.name.lower() for value in (profile.reliability, profile.durability)
        if value.name in ('BEST_EFFORT', 'TRANSIENT_LOCAL')]
    words += ['manual'] * (profile.liveliness == LivelinessPolicy.MANUAL_BY_TOPIC)
    words += ['avoid_ros_namespace_conventions'] * profile.avoid_ros_namespace_conventions
    return ' '.join(words + _spans(
        deadline=profile.deadline, lifespan=profile.lifespan,
        lease=profile.liveliness_lease_duration)) or '-'


def _spans(**spans):
    return [
        f'{name}={span.nanoseconds // 10 ** 9}' for name, span in spans.items()
        if 0 < span.nanoseconds < 10 ** 17]


def _endpoint(info):
    qos = info.qos_profile
    spans = _spans(deadline=qos.deadline, lease=qos.liveliness_lease_duration)
    node = info.node_namespace.rstrip('/') + '/' + info.node_name
    manual = ['manual'] * (qos.liveliness == LivelinessPolicy.MANUAL_BY_TOPIC)
    return ' '.join([
        node, qos.reliability.name.lower(), qos.durability.name.lower(), *spans, *manual])
