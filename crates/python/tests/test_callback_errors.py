"""An exception of a callback of every kind leaves the spin, and the executor goes on."""

import gc
import time

import pytest
import rclpy
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.signals import SignalHandlerOptions, get_current_signal_handlers_options
from rclpy.task import Future
from rclpy.time import Time
from rosgraph_msgs.msg import Clock

from action_msgs.msg import GoalStatus
from example_interfaces.action import Fibonacci
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String

DEADLINE_S = 30


class Broken(Exception):
    """What the callbacks raise."""


def fail(*_):
    raise Broken


async def fail_later(*_):
    raise Broken


async def fail_after_an_await(*_):
    done = Future()
    done.set_result(None)
    await done
    raise Broken


KINDS = {}


def kind(function):
    """Register a function that lets a callback of the node raise."""
    KINDS[function.__name__] = function
    return function


@kind
def timer(node):
    node.create_timer(0.001, fail)


@kind
def coroutine(node):
    node.create_timer(0.001, fail_later)


@kind
def coroutine_after_an_await(node):
    node.create_timer(0.001, fail_after_an_await)


@kind
def task_of_the_executor(node):
    # The loop of a test keeps no other reference to it.
    node.executor.create_task(fail)


@kind
def guard_condition(node):
    node.create_guard_condition(fail).trigger()


def publish_when_matched(node, topic):
    publisher = node.create_publisher(String, topic, 10)
    node.create_timer(0.01, lambda: publisher.publish(String(data='word')))


@kind
def subscription(node):
    node.create_subscription(String, 'words', fail, 10)
    publish_when_matched(node, 'words')


@kind
def subscription_with_info(node):
    node.create_subscription(String, 'words', lambda message, info: fail(), 10)
    publish_when_matched(node, 'words')


@kind
def raw_subscription(node):
    node.create_subscription(String, 'words', fail, 10, raw=True)
    publish_when_matched(node, 'words')


def call_when_ready(node):
    client = node.create_client(AddTwoInts, 'add')
    future = Future()

    def call():
        if client.service_is_ready():
            timer.cancel()
            client.call_async(AddTwoInts.Request()).add_done_callback(future.set_result)

    timer = node.create_timer(0.01, call)
    return future


@kind
def service(node):
    node.create_service(AddTwoInts, 'add', fail)
    call_when_ready(node)


@kind
def coroutine_of_a_service(node):
    node.create_service(AddTwoInts, 'add', fail_after_an_await)
    call_when_ready(node)


@kind
def service_that_returns_something_else(node):
    def wrong(request, response):
        return Broken

    node.create_service(AddTwoInts, 'add', wrong)
    call_when_ready(node)


@kind
def answer_of_a_client(node):
    node.create_service(AddTwoInts, 'add', lambda request, response: response)
    client = node.create_client(AddTwoInts, 'add')

    def call():
        if client.service_is_ready():
            timer.cancel()
            client.call_async(AddTwoInts.Request()).add_done_callback(fail)

    timer = node.create_timer(0.01, call)


def send_goal(node, then=lambda handle: None, feedback=None, **callbacks):
    """Send a goal when the server is there; `then` gets the goal's handle."""
    def execute(goal):
        goal.publish_feedback(Fibonacci.Feedback())
        goal.succeed()
        return Fibonacci.Result()

    group = ReentrantCallbackGroup()
    callbacks.setdefault('execute_callback', execute)
    ActionServer(node, Fibonacci, 'fibonacci', callback_group=group, **callbacks)
    client = ActionClient(node, Fibonacci, 'fibonacci', callback_group=group)

    def send():
        if client.server_is_ready():
            timer.cancel()
            sent = client.send_goal_async(Fibonacci.Goal(), feedback_callback=feedback)
            sent.add_done_callback(lambda done: then(done.result()))

    timer = node.create_timer(0.01, send)


@kind
def goal_of_an_action(node):
    send_goal(node, goal_callback=fail)


@kind
def accepted_goal_of_an_action(node):
    send_goal(node, handle_accepted_callback=fail)


@kind
def cancellation_of_an_action(node):
    send_goal(
        node, lambda handle: handle.cancel_goal_async(), cancel_callback=fail,
        handle_accepted_callback=lambda goal: None)


@kind
def feedback_of_an_action(node):
    send_goal(node, feedback=fail)


@kind
def result_of_an_action(node):
    send_goal(node, lambda handle: handle.get_result_async().add_done_callback(fail))


@kind
def answer_to_a_goal(node):
    send_goal(node, fail)


@kind
def answer_to_a_cancellation(node):
    send_goal(
        node, lambda handle: handle.cancel_goal_async().add_done_callback(fail),
        cancel_callback=lambda goal: CancelResponse.ACCEPT,
        handle_accepted_callback=lambda goal: None)


def set_when_ready(node):
    client = AsyncParameterClient(node, node.get_name())

    def call():
        if client.services_are_ready():
            timer.cancel()
            client.set_parameters([Parameter('parameter', value=2)])

    node.declare_parameter('parameter', 1)
    timer = node.create_timer(0.01, call)


@kind
def parameter_before_it_is_set(node):
    set_when_ready(node)
    node.add_pre_set_parameters_callback(fail)


@kind
def parameter_that_is_checked(node):
    set_when_ready(node)
    node.add_on_set_parameters_callback(fail)


@kind
def parameter_that_was_set(node):
    set_when_ready(node)
    node.add_post_set_parameters_callback(fail)


@kind
def event_of_a_subscription(node):
    node.create_subscription(
        String, 'words', print, 10, event_callbacks=SubscriptionEventCallbacks(matched=fail))
    node.create_publisher(String, 'words', 10)


@kind
def event_of_a_publisher(node):
    node.create_publisher(
        String, 'words', 10, event_callbacks=PublisherEventCallbacks(matched=fail))
    node.create_subscription(String, 'words', print, 10)


def jump_the_clock(node, **callbacks):
    node.set_parameters([Parameter('use_sim_time', value=True)])
    threshold = JumpThreshold(min_forward=Duration(nanoseconds=1), min_backward=None)
    node.jumps = node.get_clock().create_jump_callback(threshold, **callbacks)
    publisher = node.create_publisher(Clock, '/clock', 10)
    seconds = iter(range(1, 1_000_000))

    def publish():
        publisher.publish(Clock(clock=Time(seconds=next(seconds)).to_msg()))

    node.ticks = node.create_guard_condition(publish)


@kind
def clock_before_a_jump(node):
    jump_the_clock(node, pre_callback=fail)


@kind
def clock_after_a_jump(node):
    jump_the_clock(node, post_callback=fail)


EXECUTORS = {
    'one thread': SingleThreadedExecutor,
    'threads': lambda: MultiThreadedExecutor(2),
    'events': EventsExecutor,
}
# What is raised in place of the exception of the callback.
OTHERS = {'service_that_returns_something_else': TypeError}


@pytest.fixture
def executor(request):
    rclpy.init(args=[])
    with EXECUTORS[request.param]() as executor:
        yield executor
    rclpy.try_shutdown()
    gc.collect()


def spin_until(executor, condition, node=None):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, 'nothing came in time'
        if node is not None and hasattr(node, 'ticks'):
            node.ticks.trigger()
        executor.spin_once(timeout_sec=0.1)


@pytest.mark.parametrize('name', KINDS)
@pytest.mark.parametrize('executor', EXECUTORS, indirect=True)
def test_an_exception_of_a_callback_leaves_the_spin_and_the_executor_goes_on(name, executor):
    broken = rclpy.create_node('broken')
    executor.add_node(broken)
    KINDS[name](broken)
    with pytest.raises(OTHERS.get(name, Broken)):
        spin_until(executor, lambda: False, broken)
    broken.destroy_node()
    whole = rclpy.create_node('whole')
    executor.add_node(whole)
    ticks = []
    whole.create_timer(0.001, lambda: ticks.append(1))
    deadline = time.monotonic() + DEADLINE_S
    while len(ticks) < 3:
        assert time.monotonic() < deadline, 'the executor does not go on'
        try:
            executor.spin_once(timeout_sec=0.1)
        except (Broken, TypeError):
            # One that another thread had begun before the node was destroyed.
            continue
    whole.destroy_node()


@pytest.mark.parametrize('executor', ['one thread', 'threads'], indirect=True)
@pytest.mark.parametrize('execute', [fail, fail_later, fail_after_an_await])
def test_an_exception_of_an_execute_callback_aborts_its_goal(execute, executor, capfd):
    node = rclpy.create_node('broken')
    executor.add_node(node)
    results = []
    send_goal(
        node, lambda handle: handle.get_result_async().add_done_callback(results.append),
        execute_callback=execute)
    spin_until(executor, lambda: results)
    assert results[0].result().status == GoalStatus.STATUS_ABORTED
    assert 'Error raised in execute callback' in capfd.readouterr().err
    node.destroy_node()


def test_an_exception_of_a_jump_callback_does_not_stop_the_clock():
    rclpy.init(args=[])
    node = rclpy.create_node('node')
    clock = node.get_clock()
    clock._set_ros_time_is_active(True)
    threshold = JumpThreshold(min_forward=Duration(nanoseconds=1), min_backward=None)
    with clock.create_jump_callback(threshold, post_callback=fail):
        with pytest.raises(Broken):
            clock.set_ros_time_override(Time(seconds=1, clock_type=clock.clock_type))
        assert clock.now().nanoseconds == 10 ** 9
    clock.set_ros_time_override(Time(seconds=2, clock_type=clock.clock_type))
    assert clock.now().nanoseconds == 2 * 10 ** 9
    node.destroy_node()
    rclpy.shutdown()


def test_an_exception_of_a_shutdown_callback_leaves_the_shutdown_complete():
    rclpy.init(args=[])
    called = []

    def note():
        called.append(1)

    rclpy.get_default_context().on_shutdown(fail)
    rclpy.get_default_context().on_shutdown(note)
    with pytest.raises(Broken):
        rclpy.shutdown()
    assert not rclpy.ok() and called == [1]
    rclpy.init(args=[])
    rclpy.create_node('again').destroy_node()
    rclpy.shutdown()


def test_an_exception_of_a_native_shutdown_callback_ends_waits_and_gives_signals_back():
    rclpy.init(args=[])
    called = []
    context = rclpy.get_default_context()
    context.handle.on_shutdown(fail)
    context.on_shutdown(lambda: called.append(1))
    with pytest.raises(Broken):
        rclpy.shutdown()
    assert not rclpy.ok() and called == [1]
    assert get_current_signal_handlers_options() == SignalHandlerOptions.NO
