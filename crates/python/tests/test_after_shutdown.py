"""What a node can still do when its context is shut down, by a call or by Ctrl-C."""

import gc
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.action import ActionClient, ActionServer
from rclpy.duration import Duration
from rclpy.exceptions import NotInitializedException, ROSInterruptException
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_system_default
from rclpy.serialization import serialize_message
from rclpy.service_introspection import ServiceIntrospectionState
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import String
from test_msgs.action import Fibonacci
from test_msgs.srv import Empty
from tf2_ros import Buffer, TransformBroadcaster, TransformListener

# Longer than any program takes on a busy machine.
DEADLINE_S = 60


@pytest.fixture
def ended():
    """One entity of each kind, of a context that is shut down."""
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    node = rclpy.create_node('ended', context=context)
    node.declare_parameter('old', 1)
    everything = SimpleNamespace(
        context=context, node=node,
        lifecycle=LifecycleNode('ended_lifecycle', context=context),
        publisher=node.create_publisher(String, 'chatter', 10),
        subscription=node.create_subscription(String, 'chatter', lambda message: None, 10),
        client=node.create_client(Empty, 'empty'),
        service=node.create_service(Empty, 'empty', lambda request, response: response),
        timer=node.create_timer(100.0, lambda: None),
        guard=node.create_guard_condition(lambda: None),
        rate=node.create_rate(10.0),
        action_client=ActionClient(node, Fibonacci, 'fibonacci'),
        action_server=ActionServer(node, Fibonacci, 'fibonacci', lambda goal: None),
        broadcaster=TransformBroadcaster(node),
        executor=SingleThreadedExecutor(context=context))
    everything.executor.add_node(node)
    rclpy.shutdown(context=context)
    yield everything
    node.destroy_node()
    everything.lifecycle.destroy_node()


REFUSED = {
    'publish': lambda it: it.publisher.publish(String()),
    'publish serialized': lambda it: it.publisher.publish(serialize_message(String())),
    'subscription count': lambda it: it.publisher.get_subscription_count(),
    'assert_liveliness': lambda it: it.publisher.assert_liveliness(),
    'wait_for_all_acked': lambda it: it.publisher.wait_for_all_acked(Duration(seconds=1)),
    'create_publisher': lambda it: it.node.create_publisher(String, 'new', 10),
    'create_subscription': lambda it: it.node.create_subscription(String, 'new', print, 10),
    'create_client': lambda it: it.node.create_client(Empty, 'new'),
    'create_service': lambda it: it.node.create_service(Empty, 'new', print),
    'create_timer': lambda it: it.node.create_timer(1.0, print),
    'create_guard_condition': lambda it: it.node.create_guard_condition(print),
    'create_rate': lambda it: it.node.create_rate(1.0),
    'create_lifecycle_publisher':
        lambda it: it.lifecycle.create_lifecycle_publisher(String, 'new', 10),
    'trigger_configure': lambda it: it.lifecycle.trigger_configure(),
    'service_is_ready': lambda it: it.client.service_is_ready(),
    'wait_for_service': lambda it: it.client.wait_for_service(),
    'introspection of a client': lambda it: it.client.configure_introspection(
        it.node.get_clock(), qos_profile_system_default, ServiceIntrospectionState.METADATA),
    'introspection of a service': lambda it: it.service.configure_introspection(
        it.node.get_clock(), qos_profile_system_default, ServiceIntrospectionState.METADATA),
    'server_is_ready': lambda it: it.action_client.server_is_ready(),
    'wait_for_server': lambda it: it.action_client.wait_for_server(),
    'declare_parameter': lambda it: it.node.declare_parameter('new', 1),
    'set_parameters': lambda it: it.node.set_parameters([Parameter('old', value=2)]),
    'node names': lambda it: it.node.get_node_names(),
    'enclaves': lambda it: it.node.get_node_names_and_namespaces_with_enclaves(),
    'topic names': lambda it: it.node.get_topic_names_and_types(),
    'service names': lambda it: it.node.get_service_names_and_types(),
    'count_publishers': lambda it: it.node.count_publishers('chatter'),
    'count_services': lambda it: it.node.count_services('empty'),
    'publishers info': lambda it: it.node.get_publishers_info_by_topic('chatter'),
    'subscriptions info': lambda it: it.node.get_subscriptions_info_by_topic('chatter'),
    'names by node': lambda it: it.node.get_publisher_names_and_types_by_node('ended', '/'),
    'wait_for_node': lambda it: it.node.wait_for_node('nobody', 60.0),
    'wait_for_message': lambda it: wait_for_message(String, it.node, 'chatter'),
    'sendTransform': lambda it: it.broadcaster.sendTransform(TransformStamped()),
    'TransformBroadcaster': lambda it: TransformBroadcaster(it.node),
    'TransformListener': lambda it: TransformListener(Buffer(), it.node),
    'SingleThreadedExecutor': lambda it: SingleThreadedExecutor(context=it.context),
    'MultiThreadedExecutor': lambda it: MultiThreadedExecutor(context=it.context),
}


@pytest.mark.parametrize('call', REFUSED.values(), ids=REFUSED)
def test_the_end_of_the_context_refuses(call, ended):
    with pytest.raises(
            implementation.RCLError, match='context is (invalid|not valid).* was called'):
        call(ended)


def test_the_error_of_publish_names_the_topic_and_the_reason(ended):
    with pytest.raises(implementation.RCLError) as raised:
        ended.publisher.publish(String())
    assert str(raised.value) == (
        'failed to publish on "/chatter": publisher\'s context is invalid, '
        'rclpy.shutdown() was called; check rclpy.ok() before')


def test_other_classes_of_rclpy_stay(ended):
    for create in (ActionClient, lambda *given: ActionServer(*given, print)):
        with pytest.raises(ValueError, match='Failed to create action .* context is invalid'):
            create(ended.node, Fibonacci, 'new')
    with pytest.raises(NotInitializedException):
        rclpy.create_node('new', context=ended.context)
    with pytest.raises(ROSInterruptException):
        ended.rate.sleep()


def test_the_rest_goes_on_to_work(ended, capfd):
    node = ended.node
    assert node.get_fully_qualified_name() == '/ended'
    assert node.resolve_topic_name('chatter') == ended.publisher.topic_name == '/chatter'
    assert node.get_parameter('old').value == 1
    assert node.get_logger().info('still logged')
    assert ended.subscription.get_publisher_count() == 1
    assert not ended.client.call_async(Empty.Request()).done()
    assert not ended.action_client.send_goal_async(Fibonacci.Goal()).done()
    ended.timer.cancel()
    ended.guard.trigger()
    ended.executor.spin()
    rclpy.spin(node, ended.executor)
    assert ended.executor.shutdown()
    late = []
    ended.context.on_shutdown(lambda: late.append(True))
    assert late
    ended.action_client.destroy()
    ended.action_server.destroy()
    for kind in ('publisher', 'subscription', 'client', 'service', 'timer', 'rate'):
        assert getattr(node, f'destroy_{kind}')(getattr(ended, kind))
    assert node.destroy_guard_condition(ended.guard)
    node.destroy_node()
    node.destroy_node()
    ended.lifecycle.destroy_node()
    gc.collect()
    output, errors = capfd.readouterr()
    assert 'Traceback' not in output + errors
    assert 'still logged' in output + errors


GOAL_AT_SHUTDOWN = '''
import threading
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import MultiThreadedExecutor
from test_msgs.action import Fibonacci

rclpy.init(args=[])
node = rclpy.create_node('goal')
started, ended = threading.Event(), threading.Event()

def execute(goal):
    started.set()
    ended.wait()
    try:
        goal.publish_feedback(Fibonacci.Feedback())
    finally:
        print('executed', flush=True)

server = ActionServer(node, Fibonacci, 'fibonacci', execute)
client = ActionClient(node, Fibonacci, 'fibonacci')
executor = MultiThreadedExecutor(2)
executor.add_node(node)
thread = threading.Thread(target=executor.spin)
thread.start()
client.wait_for_server()
client.send_goal_async(Fibonacci.Goal())
started.wait()
rclpy.shutdown()
ended.set()
thread.join()
executor.shutdown()
node.destroy_node()
'''


def test_a_goal_that_executes_at_the_shutdown_ends_without_a_traceback():
    child = start(GOAL_AT_SHUTDOWN)
    output, errors = ending(child)
    assert (child.returncode, output, errors) == (0, 'executed\n', '')


LOOPS = {
    'publish': 'publisher.publish(String())',
    'transform': 'broadcaster.sendTransform(TransformStamped())',
    'parameter': 'node.set_parameters([Parameter("p", value=1)])',
    'service': 'client.wait_for_service(timeout_sec=0.01)',
    'names': 'node.get_node_names()',
    'rate': 'rate.sleep()',
    'publisher': 'node.destroy_publisher(node.create_publisher(String, "new", 1))',
}
LOOP = '''
import sys, threading
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import Empty
from tf2_ros import TransformBroadcaster

rclpy.init(args=[])
node = rclpy.create_node('loop')
publisher = node.create_publisher(String, 'chatter', 10)
broadcaster = TransformBroadcaster(node)
client = node.create_client(Empty, 'nobody')
rate = node.create_rate(100.0)
node.declare_parameter('p', 0)
call = compile(sys.argv[1], 'call', 'eval')
began = threading.Event()

def loop():
    while True:
        eval(call)
        began.set()

threading.Thread(target=loop).start()
executor = rclpy.get_global_executor()
executor.add_node(node)
while not began.is_set():
    executor.spin_once(timeout_sec=0.01)
print('ready', flush=True)
executor.spin()
'''


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, '-c', program, *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)


def ending(child):
    """Return what a program prints before it ends."""
    try:
        return child.communicate(timeout=DEADLINE_S)
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize('name', LOOPS)
def test_ctrl_c_ends_a_thread_that_loops_for_ever(name):
    child = start(LOOP, LOOPS[name])
    assert child.stdout.readline() == 'ready\n', child.stderr.read()
    child.send_signal(signal.SIGINT)
    _, errors = ending(child)
    assert child.returncode == -signal.SIGINT, errors
    assert 'KeyboardInterrupt' in errors
    error = 'ROSInterruptException' if name == 'rate' else 'SIGINT shut it down'
    assert error in errors


OK_LOOP = '''
import threading
import rclpy
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('loop')
publisher = node.create_publisher(String, 'chatter', 10)

def loop():
    while rclpy.ok():
        publisher.publish(String())

# The signal may come between the look and the message, as in rclpy.
threading.excepthook = lambda given: None
thread = threading.Thread(target=loop)
thread.start()
try:
    print('ready', flush=True)
    rclpy.spin(node)
except KeyboardInterrupt:
    print('interrupted', flush=True)
thread.join()
node.destroy_node()
rclpy.try_shutdown()
'''


def test_ctrl_c_ends_a_thread_that_publishes_while_ok():
    child = start(OK_LOOP)
    assert child.stdout.readline() == 'ready\n', child.stderr.read()
    child.send_signal(signal.SIGINT)
    output, errors = ending(child)
    assert (child.returncode, output, errors) == (0, 'interrupted\n', '')


INTERRUPTED = '''
import collections, itertools, os, signal, threading
import rclpy
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('interrupted')
publisher = node.create_publisher(String, 'chatter', 10)
# All calls come from C. So the interpreter does not look for signals between them.
calls = map(publisher.handle.publish, itertools.repeat(String()))
try:
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    collections.deque(calls, maxlen=0)
except BaseException as error:
    print(type(error).__name__)
'''


def test_ctrl_c_in_publish_is_a_keyboard_interrupt():
    output, errors = ending(start(INTERRUPTED))
    assert (output, errors) == ('KeyboardInterrupt\n', '')


NEXT_CONTEXT = '''
import signal
import sys
import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('before')
publisher = node.create_publisher(String, 'chatter', 10)
try:
    signal.raise_signal(signal.Signals[sys.argv[1]])
except KeyboardInterrupt:
    pass
context = rclpy.Context()
rclpy.init(context=context, args=[])
rclpy.create_node('after', context=context).create_publisher(String, 'a', 1).publish(String())
try:
    publisher.publish(String())
except rclpy_implementation.RCLError as error:
    print(context.ok(), rclpy.ok(), error)
'''


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM'])
def test_a_context_that_a_signal_ended_stays_invalid_beside_a_new_one(name):
    output, errors = ending(start(NEXT_CONTEXT, name))
    assert errors == ''
    assert output.startswith('True False failed to publish on "/chatter"')
    assert f'{name} shut it down' in output
