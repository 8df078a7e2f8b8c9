"""The graph rows of the behaviour tables on nodes of rclpy; see `test_behaviour.py`."""

import copy
import functools
import gc

from example_interfaces.srv import AddTwoInts
from rclpy.client import Client
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, qos_profile_best_available, QoSPolicyKind,
    QoSProfile, ReliabilityPolicy,
)
from rclpy.service import Service
from rclpy.subscription import Subscription
from std_msgs.msg import String

_OF_EVERY_NODE = {'/parameter_events', '/rosout'}


# ROS 2's rclpy never destroys the service for type descriptions, which keeps the context.
WITHOUT_TYPE_DESCRIPTIONS = [Parameter('start_type_description_service', value=False)]


class Graph:
    """Nodes in one context, on which the steps of a row run."""

    def __init__(self):
        self.contexts, self.executors, self.nodes = [], [], []
        self.entities, self.statuses, self.taken = [], [], {}
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
            start_parameter_services=False, parameter_overrides=WITHOUT_TYPE_DESCRIPTIONS)
        self.nodes.append(self.node)
        self.executor.add_node(self.node)

    def play(self, step):
        kind, *words = step.split()
        if kind in ('node', 'context'):
            getattr(self, f'add_{kind}')(*words)
        elif kind == 'drop':
            self.drop(int(words[0]) - 1)
        elif kind == 'send':
            self.entities[int(words[0]) - 1][0].publish(String(data=words[1]))
        else:
            self.statuses.append({})
            entity = getattr(self, kind)(words[0], self.statuses[-1], *words[1:])
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
        return self.node.create_publisher(
            String, topic, _profile(words), event_callbacks=callbacks)

    def sub(self, topic, status, *words):
        callbacks = SubscriptionEventCallbacks(use_default_callbacks=False, **_status_callbacks(
            status, 'matched', 'incompatible_qos', 'liveliness'))
        # A message that the executor takes is kept, too.
        at, self.taken[len(self.entities)] = len(self.entities), []
        return self.node.create_subscription(
            String, topic, lambda message: self.taken[at].append(message.data), _profile(words),
            event_callbacks=callbacks)

    def server(self, name, _):
        return self.node.create_service(AddTwoInts, name, lambda _, response: response)

    def client(self, name, _):
        return self.node.create_client(AddTwoInts, name)

    def answer(self, step):
        for executor in self.executors:
            for _ in range(3 * len(self.entities) + 3):
                executor.spin_once(timeout_sec=0)
        kind, *words = step.split()
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


def _endpoint(info):
    qos = info.qos_profile
    spans = [
        f'{name}={span.nanoseconds // 10 ** 9}'
        for name, span in (('deadline', qos.deadline), ('lease', qos.liveliness_lease_duration))
        if 0 < span.nanoseconds < 10 ** 17]
    node = info.node_namespace.rstrip('/') + '/' + info.node_name
    manual = ['manual'] * (qos.liveliness == LivelinessPolicy.MANUAL_BY_TOPIC)
    return ' '.join([
        node, qos.reliability.name.lower(), qos.durability.name.lower(), *spans, *manual])
