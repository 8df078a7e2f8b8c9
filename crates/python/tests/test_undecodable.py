"""A message that is not of the type ends no program: it is dropped, and what follows arrives."""

import threading
import time

import pytest
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_profile_action_status_default
from rclpy.task import Future
from rclpy.wait_for_message import wait_for_message
from tf2_ros import Buffer, TransformListener

from action_msgs.msg import GoalStatusArray
from example_interfaces.action import Fibonacci
from geometry_msgs.msg import TransformStamped
from rcl_interfaces.msg import ParameterEvent
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool, String
from test_msgs.msg import BoundedSequences
from tf2_msgs.msg import TFMessage

DEADLINE_S = 30

HEADER = b'\x00\x01\x00\x00'

# Of no type that has a string or a sequence first.
NOTHING = [
    HEADER,
    HEADER + b'\xff\xff\xff\xff',
    HEADER + b'\x02\x00',
    HEADER + b'\x09\x00\x00\x00a\x00',
    b'\x00\x00\x00\x00\xff\xff\xff\xff',
]

EXECUTORS = [SingleThreadedExecutor, MultiThreadedExecutor, EventsExecutor]


@pytest.fixture
def node():
    rclpy.init()
    node = rclpy.create_node('tried')
    yield node
    node.destroy_node()
    rclpy.shutdown()


def publish_wrong(publisher, payloads=NOTHING):
    while publisher.get_subscription_count() == 0:
        time.sleep(0.01)
    for payload in payloads:
        publisher.publish(payload)


@pytest.mark.parametrize('executor_type', EXECUTORS)
def test_every_executor_goes_on(node, executor_type):
    heard = []
    node.create_subscription(String, 'word', lambda word: heard.append(word.data), 20)
    node.create_subscription(Bool, 'flag', lambda flag: heard.append(flag.data), 20)
    node.create_subscription(
        BoundedSequences, 'bounded', lambda it: heard.append(list(it.bool_values)), 20)
    words = node.create_publisher(String, 'word', 20)
    flags = node.create_publisher(Bool, 'flag', 20)
    bounded = node.create_publisher(BoundedSequences, 'bounded', 20)
    executor = executor_type()
    executor.add_node(node)
    publish_wrong(words)
    publish_wrong(flags, [HEADER, HEADER + b'\x07'])
    # Four where three fit, and a boolean of 7.
    publish_wrong(bounded, [
        HEADER + b'\x04\x00\x00\x00\x01\x01\x01\x01', HEADER + b'\x01\x00\x00\x00\x07'])
    words.publish(String(data='right'))
    flags.publish(Bool(data=True))
    bounded.publish(BoundedSequences(bool_values=[True]))
    # More behind the message, and bytes that are not UTF-8, are legal.
    words.publish(HEADER + b'\x02\x00\x00\x00b\x00\x09\x09\x09')
    words.publish(HEADER + b'\x03\x00\x00\x00\xffc\x00')
    end = time.monotonic() + DEADLINE_S
    while len(heard) < 5 and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    assert [one for one in heard if isinstance(one, str)] == ['right', 'b', '\ufffdc']
    assert True in heard and [True] in heard
    assert len(heard) == 5


def test_the_log_names_the_publisher_and_the_reason_once(node, capfd):
    node.create_subscription(String, 'word', lambda _: None, 20)
    publisher = node.create_publisher(String, 'word', 20)
    publish_wrong(publisher)
    publisher.publish(String(data='right'))
    rclpy.spin_once(node, timeout_sec=DEADLINE_S)
    lines = [line for line in capfd.readouterr().err.splitlines() if '"/word"' in line]
    assert len(lines) == 1, lines
    assert lines[0].startswith('[WARN]') and '[pteros]' in lines[0]
    assert 'std_msgs/msg/String: data: payload ends early' in lines[0]


def test_a_raw_subscription_gets_the_bytes(node):
    heard = []
    node.create_subscription(String, 'word', heard.append, 20, raw=True)
    publish_wrong(node.create_publisher(String, 'word', 20))
    end = time.monotonic() + DEADLINE_S
    while len(heard) < len(NOTHING) and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    assert [bytes(one) for one in heard] == NOTHING


def test_spin_until_future_complete_goes_on(node):
    future = Future()
    node.create_subscription(String, 'word', future.set_result, 20)
    publisher = node.create_publisher(String, 'word', 20)
    publish_wrong(publisher)
    publisher.publish(String(data='right'))
    rclpy.spin_until_future_complete(node, future, timeout_sec=DEADLINE_S)
    assert future.result().data == 'right'


def test_wait_for_message_waits_for_one_of_the_type(node):
    publisher = node.create_publisher(String, 'word', 20)

    def speak():
        publish_wrong(publisher)
        time.sleep(0.2)
        publisher.publish(String(data='right'))

    speaker = threading.Thread(target=speak)
    speaker.start()
    came, word = wait_for_message(
        String, node, 'word', qos_profile=QoSProfile(depth=20), time_to_wait=DEADLINE_S)
    speaker.join()
    assert came and word.data == 'right'


def test_wait_for_message_keeps_its_time(node):
    publisher = node.create_publisher(String, 'word', 20)
    speaker = threading.Thread(target=publish_wrong, args=[publisher])
    speaker.start()
    begin = time.monotonic()
    assert wait_for_message(String, node, 'word', time_to_wait=0.5) == (False, None)
    assert time.monotonic() - begin >= 0.4
    speaker.join()


def test_the_topics_that_every_node_has(node):
    node.set_parameters([Parameter('use_sim_time', value=True)])
    buffer = Buffer(node=node)
    listener = TransformListener(buffer, node)
    events = []
    node.create_subscription(ParameterEvent, '/parameter_events', events.append, 10)
    clock = node.create_publisher(Clock, '/clock', 10)
    transforms = node.create_publisher(TFMessage, '/tf', 100)
    parameters = node.create_publisher(ParameterEvent, '/parameter_events', 10)
    publish_wrong(clock, [HEADER, HEADER + b'\x01\x00'])
    publish_wrong(transforms)
    publish_wrong(parameters, [HEADER, HEADER + b'\x01\x00'])
    now = Clock()
    now.clock.sec = 77
    transform = TransformStamped(child_frame_id='base')
    transform.header.frame_id = 'map'
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        clock.publish(now)
        transforms.publish(TFMessage(transforms=[transform]))
        parameters.publish(ParameterEvent(node='/other'))
        rclpy.spin_once(node, timeout_sec=0.05)
        is_known = buffer.can_transform('map', 'base', rclpy.time.Time())
        if is_known and node.get_clock().now().nanoseconds == 77_000_000_000 and events:
            break
    assert node.get_clock().now().nanoseconds == 77_000_000_000
    assert buffer.can_transform('map', 'base', rclpy.time.Time())
    assert any(event.node == '/other' for event in events)
    listener.unregister()


def test_the_topics_of_an_action(node):
    def count(goal):
        feedback = Fibonacci.Feedback(sequence=[1])
        goal.publish_feedback(feedback)
        goal.succeed()
        return Fibonacci.Result(sequence=[1, 2])

    server = ActionServer(node, Fibonacci, 'count', count)
    client = ActionClient(node, Fibonacci, 'count')
    assert client.wait_for_server(DEADLINE_S)
    feedback = node.create_publisher(Fibonacci.Impl.FeedbackMessage, 'count/_action/feedback', 10)
    status = node.create_publisher(
        GoalStatusArray, 'count/_action/status', qos_profile_action_status_default)
    publish_wrong(feedback, [HEADER, HEADER + b'\x01\x02'])
    publish_wrong(status)
    heard = []
    sent = client.send_goal_async(
        Fibonacci.Goal(order=1), feedback_callback=lambda one: heard.append(one.feedback))
    rclpy.spin_until_future_complete(node, sent, timeout_sec=DEADLINE_S)
    result = sent.result().get_result_async()
    rclpy.spin_until_future_complete(node, result, timeout_sec=DEADLINE_S)
    assert list(result.result().result.sequence) == [1, 2]
    server.destroy()
    client.destroy()
