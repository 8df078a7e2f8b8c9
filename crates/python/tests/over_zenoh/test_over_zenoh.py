"""Two programs that share nothing but Zenoh: topics, services and parameters."""

import os
import signal
import subprocess
import sys
import time

import pytest
import rclpy
from example_interfaces.srv import AddTwoInts
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSDurabilityPolicy, QoSProfile
from std_msgs.msg import String

os.environ['PTEROS_WIRE'] = 'zenoh'
os.environ['PTEROS_SHARED_MEMORY'] = 'off'

SOON = 30.0

OTHER = """
import rclpy
from example_interfaces.srv import AddTwoInts
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile
from std_msgs.msg import String


def add(request, response):
    response.sum = request.a + request.b
    return response


rclpy.init()
node = Node('other')
node.declare_parameter('answer', 42)
node.create_service(AddTwoInts, 'add', add)
latched = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
node.create_publisher(String, 'latched', latched).publish(String(data='kept'))
back = node.create_publisher(String, 'back', 10)
node.create_subscription(String, 'there', back.publish, 10)
try:
    rclpy.spin(node)
except KeyboardInterrupt:
    pass
"""


@pytest.fixture
def node():
    other = subprocess.Popen([sys.executable, '-c', OTHER])
    rclpy.init()
    node = rclpy.create_node('here')
    yield node
    node.destroy_node()
    rclpy.try_shutdown()
    other.kill()
    other.wait()


def spin_until(node, condition):
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, 'it took too long'
        executor.spin_once(timeout_sec=0.1)
    executor.remove_node(node)


def call(node, client, request):
    assert client.wait_for_service(timeout_sec=SOON)
    future = client.call_async(request)
    spin_until(node, future.done)
    return future.result()


def test_messages_come_back_in_order(node):
    received = []
    node.create_subscription(String, 'back', lambda message: received.append(message.data), 10)
    publisher = node.create_publisher(String, 'there', 10)
    spin_until(node, lambda: publisher.get_subscription_count() == 1)
    spin_until(node, lambda: node.count_publishers('back') == 1)
    for number in range(20):
        text = str(number) * (100_000 if number == 7 else 1)
        publisher.publish(String(data=text))
        spin_until(node, lambda: len(received) > number)
        assert received[number] == text


def test_a_latched_message_comes_to_a_late_joiner(node):
    received = []
    latched = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
    spin_until(node, lambda: node.count_publishers('latched') == 1)
    node.create_subscription(String, 'latched', received.append, latched)
    spin_until(node, lambda: received)
    assert received == [String(data='kept')]


def test_services_and_parameters_answer(node):
    response = call(node, node.create_client(AddTwoInts, 'add'), AddTwoInts.Request(a=40, b=2))
    assert response.sum == 42
    client = node.create_client(GetParameters, 'other/get_parameters')
    values = call(node, client, GetParameters.Request(names=['answer'])).values
    assert [value.integer_value for value in values] == [42]


def test_a_forked_process_is_told_that_it_cannot_join(node):
    """It waited for threads of Zenoh that only its parent has."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            rclpy.init(context=rclpy.Context())
        except Exception as error:
            status = 0 if 'forked' in str(error) else 2
        os._exit(status)
    deadline = time.monotonic() + SOON
    ended, status = 0, 0
    while ended == 0 and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        rclpy.spin_once(node, timeout_sec=0.05)
    if ended == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (ended, os.waitstatus_to_exitcode(status)) == (child, 0)
