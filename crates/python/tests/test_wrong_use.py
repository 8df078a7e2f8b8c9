"""Wrong use raises the exceptions that rclpy raises."""

import pytest
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.exceptions import InvalidHandle, InvalidTopicNameException, NotInitializedException
from rclpy.impl.implementation_singleton import rclpy_implementation as implementation
from rclpy.qos import QoSPresetProfiles
from std_msgs.msg import Int32, String
from test_msgs.action import Fibonacci
from test_msgs.srv import Empty

RCLError = implementation.RCLError


@pytest.fixture
def node():
    with rclpy.Context() as context:
        node = rclpy.create_node('wrong', context=context)
        yield node
        node.destroy_node()


def create_server(node, *given, **options):
    return ActionServer(node, *given, print, **options)


def types_for(create, *rest):
    """Things that are no interface at all, given as the type."""
    return [
        (lambda node, given=given: create(node, given, 'name', *rest))
        for given in (int, object, 'std_msgs/msg/String', None)]


NO_INTERFACE = [
    *types_for(rclpy.node.Node.create_publisher, 10),
    *types_for(rclpy.node.Node.create_subscription, print, 10),
    *types_for(rclpy.node.Node.create_client),
    *types_for(rclpy.node.Node.create_service, print),
    *types_for(ActionClient),
    *types_for(create_server),
]


@pytest.mark.parametrize('create', NO_INTERFACE)
def test_a_type_that_is_no_interface_is_an_attribute_error(create, node):
    with pytest.raises(AttributeError, match='Pass a class such as'):
        create(node)


WRONG_KINDS = {
    'publisher of a service': lambda node: node.create_publisher(Empty, 'name', 10),
    'publisher of an action': lambda node: node.create_publisher(Fibonacci, 'name', 10),
    'subscription of a service': lambda node: node.create_subscription(Empty, 'name', print, 10),
    'client of a message': lambda node: node.create_client(String, 'name'),
    'client of a request': lambda node: node.create_client(Empty.Request, 'name'),
    'client of an instance': lambda node: node.create_client(Empty.Request(), 'name'),
    'service of an action': lambda node: node.create_service(Fibonacci, 'name', print),
    # These end rclpy's process.
    'action client of a service': lambda node: ActionClient(node, Empty, 'name'),
    'action client of a goal': lambda node: ActionClient(node, Fibonacci.Goal, 'name'),
    'action server of a message': lambda node: create_server(node, String, 'name'),
}


@pytest.mark.parametrize('create', WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_an_interface_of_another_kind_is_a_runtime_error(create, node):
    with pytest.raises(RuntimeError, match='type provided .* is not valid: pass'):
        create(node)


@pytest.mark.parametrize('wrong', ['x', None, 1.5, 1 << 70, QoSPresetProfiles])
def test_qos_of_another_type_is_a_type_error(wrong, node):
    with pytest.raises(TypeError):
        node.create_publisher(String, 'name', wrong)
    with pytest.raises(TypeError):
        node.create_subscription(String, 'name', print, wrong)


def test_a_bool_is_a_depth_as_every_int(node):
    assert node.create_publisher(String, 'name', True).qos_profile.depth == 1


@pytest.mark.parametrize('name', ['', 'a b', '1a', 'a//b', 'a/', 'a{b', '{unknown}'])
def test_the_name_of_an_action_is_checked(name, node):
    for create in (ActionClient, create_server):
        with pytest.raises(ValueError, match='Failed to create action'):
            create(node, Fibonacci, name)
    with pytest.raises(RCLError, match='failed to resolve name'):
        node.resolve_topic_name(name)
    with pytest.raises(RCLError, match='failed to resolve name'):
        node.resolve_service_name(name)


def test_names_of_topics_and_nodes_are_checked(node):
    with pytest.raises(InvalidTopicNameException):
        node.create_publisher(String, 'a b', 10)
    with pytest.raises(RCLError):
        node.get_publisher_names_and_types_by_node('a b', '/')
    with pytest.raises(RCLError):
        node.get_publisher_names_and_types_by_node('a', 'not/absolute')


@pytest.mark.parametrize(('period', 'error', 'text'), [
    (-1.0, RCLError, 'must be non-negative'),
    (1e10, TypeError, 'at most 292 years'),
    ('a', ValueError, 'could not convert'),
    (None, TypeError, 'NoneType'),
    (float('inf'), OverflowError, 'infinity'),
])
def test_the_period_of_a_timer_is_checked(period, error, text, node):
    with pytest.raises(error, match=text):
        node.create_timer(period, print)


def test_durations_are_no_numbers(node):
    with pytest.raises(TypeError, match='must be a Duration'):
        node.get_clock().sleep_for(3)
    with pytest.raises(TypeError, match='must be a number of seconds'):
        create_server(node, Fibonacci, 'name', result_timeout='900')


def test_publish_checks_the_class(node):
    publisher = node.create_publisher(String, 'name', 10)
    for wrong in (Int32(), 'text', None, String):
        with pytest.raises(TypeError, match="on topic 'name'"):
            publisher.publish(wrong)


def test_what_is_destroyed_cannot_be_used(node):
    publisher = node.create_publisher(String, 'name', 10)
    timer = node.create_timer(1.0, print)
    client = ActionClient(node, Fibonacci, 'name')
    node.destroy_publisher(publisher)
    node.destroy_timer(timer)
    client.destroy()
    for call in (lambda: publisher.publish(String()), timer.reset, timer.cancel):
        with pytest.raises(InvalidHandle, match='was destroyed'):
            call()
    for call in (client.server_is_ready, client.wait_for_server,
                 lambda: client.send_goal_async(Fibonacci.Goal())):
        with pytest.raises(RCLError, match="action client 'name'.* was destroyed"):
            call()
    node.destroy_node()
    for call in (node.get_name, node.get_node_names,
                 lambda: node.create_publisher(String, 'name', 10),
                 lambda: ActionClient(node, Fibonacci, 'name')):
        with pytest.raises(InvalidHandle):
            call()


def test_contexts_are_initialized_once():
    context = rclpy.Context()
    with pytest.raises(NotInitializedException):
        rclpy.create_node('early', context=context)
    with pytest.raises(RuntimeError, match='must be initialized'):
        rclpy.shutdown(context=context)
    rclpy.init(context=context, args=[])
    with pytest.raises(RuntimeError, match='must only be called once'):
        rclpy.init(context=context, args=[])
    rclpy.shutdown(context=context)
    with pytest.raises(RCLError, match='shut down already'):
        rclpy.shutdown(context=context)
    with pytest.raises(RuntimeError, match='must only be called once'):
        rclpy.init(context=context, args=[])
