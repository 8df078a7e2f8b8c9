"""Memory, descriptors and threads stay as they are while nodes come and go."""

import subprocess
import sys

PROGRAM = '''
import gc, os, sys
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from example_interfaces.action import Fibonacci
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String

# Tables, pools and the allocator fill first.
WARM_UP, NODES, LIVING = 200, 1000, 20


class Full(rclpy.node.Node):
    """A node with endpoints of all kinds. Their callbacks make cycles with it."""

    def __init__(self):
        super().__init__('full')
        self.heard = []
        self.publisher = self.create_publisher(
            String, 'words', 10, event_callbacks=PublisherEventCallbacks(matched=self.note))
        self.create_subscription(
            String, 'words', self.note, 10,
            event_callbacks=SubscriptionEventCallbacks(matched=self.note))
        self.create_subscription(String, 'raw_words', self.note, 10, raw=True)
        self.create_service(AddTwoInts, 'add', lambda request, response: self.note(response))
        self.adder = self.create_client(AddTwoInts, 'add')
        self.create_timer(0.0, lambda: self.note(None))
        self.guard = self.create_guard_condition(lambda: self.note(None))
        self.server = ActionServer(self, Fibonacci, 'fibonacci', self.note)
        self.client = ActionClient(self, Fibonacci, 'fibonacci')
        self.declare_parameter('parameter', 1)
        self.add_on_set_parameters_callback(self.note)
        self.jumps = self.get_clock().create_jump_callback(
            JumpThreshold(min_forward=Duration(seconds=1), min_backward=None),
            post_callback=self.note)

    def note(self, what):
        self.heard.append(what)
        return what


def come_and_go(number):
    node = Full()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    node.publisher.publish(String(data='x' * 1000))
    future = node.adder.call_async(AddTwoInts.Request())
    future.add_done_callback(lambda done, node=node: node.note(done))
    node.guard.trigger()
    for _ in range(6):
        executor.spin_once(timeout_sec=0)
    assert node.heard
    # Every other one is left to the garbage collector, as a whole.
    if number % 2:
        executor.shutdown()
        node.jumps.unregister()
        node.server.destroy()
        node.client.destroy()
        node.destroy_node()
    if number % 20 == 0:
        gc.collect()


def used():
    gc.collect()
    with open('/proc/self/statm') as file:
        resident = int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    return resident, len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task'))


rclpy.init(args=[])
for number in range(WARM_UP):
    come_and_go(number)
before = used()
living = [Full() for _ in range(LIVING)]
of_a_node = (used()[0] - before[0]) / LIVING
for node in living:
    node.destroy_node()
del living, node
before = used()
for number in range(NODES):
    come_and_go(number)
after = used()
print(f'{(after[0] - before[0]) / NODES:.0f} bytes a node; one that lives has {of_a_node:.0f}')
# A node that leaves more than a twentieth of itself behind has left an endpoint.
assert after[0] - before[0] < NODES * of_a_node / 20, (before, after, of_a_node)
assert after[1:] == before[1:], (before, after)
last = rclpy.create_node('last')
assert last.get_node_names() == ['last'], last.get_node_names()
last.destroy_node()
rclpy.shutdown()
'''

MESSAGES = '''
import gc, os
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('cycles')
heard = []
publisher = node.create_publisher(String, 'words', 10)
node.create_subscription(String, 'words', heard.append, 10)
executor = SingleThreadedExecutor()
executor.add_node(node)


def turn():
    """Make garbage that only the collector finds: messages, futures, tasks, exceptions."""
    message = String(data='x' * 10_000)
    publisher.publish(message)
    future = Future(executor=executor)
    future.add_done_callback(lambda done: (future, message))

    async def wait():
        await future
        raise ValueError(message)

    task = executor.create_task(wait)
    task.add_done_callback(lambda done: task)
    future.set_result(heard[:])
    try:
        while not heard or not task.done():
            executor.spin_once(timeout_sec=1)
    except ValueError as error:
        error.cycle = error
    while not heard:
        executor.spin_once(timeout_sec=1)
    heard.clear()


def resident():
    gc.collect()
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


for _ in range(500):
    turn()
before = resident()
for _ in range(2000):
    turn()
# A leaked message has 10 kB.
assert resident() - before < 2000 * 1000, resident() - before
rclpy.shutdown()
'''


def run(program):
    done = subprocess.run(
        [sys.executable, '-X', 'faulthandler', '-c', program], text=True, capture_output=True,
        timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


def test_a_thousand_nodes_with_endpoints_of_all_kinds_leave_nothing_behind():
    run(PROGRAM)


def test_garbage_with_cycles_leaves_no_memory_behind():
    run(MESSAGES)
