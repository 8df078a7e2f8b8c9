"""Simulated time: what timers, rates and clocks do when it jumps, starts or ends."""

import threading

import pytest
import rclpy
from rclpy.clock import ROSClock
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.parameter import Parameter
from rclpy.time import Time
from rosgraph_msgs.msg import Clock

DEADLINE_S = 20
EXECUTORS = [SingleThreadedExecutor, MultiThreadedExecutor, EventsExecutor]


@pytest.fixture
def context():
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    yield context
    context.try_shutdown()


@pytest.fixture
def node(context):
    node = rclpy.create_node('node', namespace='/clocks', context=context)
    yield node
    node.destroy_node()


def set_time(clock, seconds):
    clock.set_ros_time_override(
        Time(nanoseconds=round(seconds * 1e9), clock_type=clock.clock_type))


def simulated_clock(seconds):
    clock = ROSClock()
    clock._set_ros_time_is_active(True)
    set_time(clock, seconds)
    return clock


# A timer of one second starts at 10 s. Each step is a time, a switch or a call, and the number
# of calls after it: the same as that of rclpy over rcl.
STORIES = {
    'in step': [(10.5, 0), (11, 1), (12, 2), (12.4, 2), (13.1, 3), (14, 4)],
    'forward by whole periods': [(13, 1), (13.5, 1), (14, 2), (20, 3), (20.5, 3), (21, 4)],
    'forward by part of a period': [(13.3, 1), (13.9, 1), (14, 2), (20.7, 3), (21, 4)],
    'far back': [(11, 1), (5, 1), (5.5, 1), (6, 2), (7, 3)],
    'back behind the last call': [(11, 1), (10.9, 1), (11.5, 1), (11.9, 2), (12.9, 3)],
    'back, but not behind the last call': [(11, 1), (11.5, 1), (11.2, 1), (12, 2), (12.9, 2)],
    'back before the first call': [(3, 0), (3.9, 0), (4, 1)],
    'back twice': [(11, 1), (5, 1), (2, 1), (2.9, 1), (3, 2), (1, 2), (2, 3)],
    'back to zero': [(11, 1), (0, 1), (1, 2), (2, 3)],
    'back and far forward': [(11, 1), (5, 1), (100, 2), (100.5, 2), (101, 3)],
    'cancelled during a jump back': [
        (11, 1), ('cancel', 1), (5, 1), (7, 1), ('reset', 1), (7.5, 1), (8, 2)],
    'cancelled during a jump forward': [
        ('cancel', 0), (50, 0), ('reset', 0), (50.9, 0), (51, 1), (20, 1), (21, 2)],
    'reset after a jump back': [(11, 1), (5, 1), (5.5, 1), ('reset', 1), (6, 1), (6.5, 2)],
    'another period before a jump': [(11, 1), (0.25, 'period'), (5, 1), (5.25, 2), (5.5, 3)],
    'off and on': [(11, 1), ('off', 1), ('on', 1), (11.5, 1), (12, 2)],
    'off, set, and on': [(11, 1), ('off', 1), (5, 1), ('on', 1), (5.9, 1), (6, 2)],
}


@pytest.mark.parametrize('story', STORIES)
def test_a_timer_goes_on_after_every_jump(node, context, story):
    clock = simulated_clock(10)
    calls = []
    timer = node.create_timer(1.0, lambda: calls.append(1), clock=clock)
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        for step, expected in STORIES[story]:
            if expected == 'period':
                timer.timer_period_ns = round(step * 1e9)
                continue
            if isinstance(step, str):
                actions = {
                    'cancel': timer.cancel, 'reset': timer.reset,
                    'off': lambda: clock._set_ros_time_is_active(False),
                    'on': lambda: clock._set_ros_time_is_active(True)}
                actions[step]()
            else:
                set_time(clock, step)
            for _ in range(4):
                executor.spin_once(timeout_sec=0)
            assert len(calls) == expected, (step, calls)
            assert timer.is_canceled() or timer.time_until_next_call() <= 10**9


def test_a_clock_without_a_time_starts_its_timers_with_the_first_one(node, context):
    clock = ROSClock()
    calls = []
    node.create_timer(1000.0, lambda: calls.append(1), clock=clock)
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        clock._set_ros_time_is_active(True)
        for seconds, expected in [(5, 0), (1004, 0), (1005, 1), (2005, 2)]:
            set_time(clock, seconds)
            executor.spin_once(timeout_sec=0)
            assert len(calls) == expected, seconds


def test_several_timers_of_one_clock_go_on_in_their_own_periods(node, context):
    clock, other = simulated_clock(100), simulated_clock(100)
    calls = {}
    for name, period, its_clock in [
            ('fast', 0.5, clock), ('slow', 2.0, clock), ('other', 1.0, other)]:
        calls[name] = 0

        def count(name=name):
            calls[name] += 1

        node.create_timer(period, count, clock=its_clock)
    stopped = node.create_timer(1.0, lambda: pytest.fail('it is cancelled'), clock=clock)
    stopped.cancel()
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        for seconds, expected in [
                (10, (0, 0)), (10.5, (1, 0)), (11, (2, 0)), (12, (3, 1)), (4, (3, 1)),
                (6, (4, 2)), (6.5, (5, 2))]:
            set_time(clock, seconds)
            for _ in range(8):
                executor.spin_once(timeout_sec=0)
            assert (calls['fast'], calls['slow']) == expected, seconds
        assert calls['other'] == 0


def other_thread(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize('executor_class', EXECUTORS)
def test_a_rate_wakes_after_a_jump_back_in_every_executor(node, context, executor_class):
    clock = simulated_clock(1000)
    rate = node.create_rate(1.0, clock=clock)
    woken = threading.Semaphore(0)

    def loop():
        for _ in range(4):
            rate.sleep()
            woken.release()

    executor = executor_class(context=context)
    executor.add_node(node)
    spinner = other_thread(executor.spin)
    loops = other_thread(loop)
    # Each sleep ends although the time that it was to end at never comes.
    for start in (1000, 500, 20, 0):
        seconds = start
        set_time(clock, seconds)
        for _ in range(DEADLINE_S * 20):
            seconds += 0.3
            set_time(clock, seconds)
            if woken.acquire(timeout=0.05):
                break
        else:
            pytest.fail(f'the rate sleeps on after {start}')
    loops.join(DEADLINE_S)
    assert not loops.is_alive()
    executor.shutdown()
    spinner.join(DEADLINE_S)


@pytest.mark.parametrize('executor_class', EXECUTORS)
def test_use_sim_time_can_be_switched_while_timers_run(node, context, executor_class):
    ticks = threading.Semaphore(0)
    node.create_timer(0.02, ticks.release, clock=node.get_clock())
    publisher = node.create_publisher(Clock, '/clock', 10)
    executor = executor_class(context=context)
    executor.add_node(node)
    spinner = other_thread(executor.spin)

    def expect_ticks(advance):
        while ticks.acquire(blocking=False):
            pass
        for _ in range(DEADLINE_S * 20):
            advance()
            if ticks.acquire(timeout=0.05):
                return
        pytest.fail('the timer has stopped')

    message = Clock()
    message.clock.sec = 100

    def advance_clock():
        message.clock.sec += 1
        publisher.publish(message)

    expect_ticks(lambda: None)
    for start in (100, 50):
        node.set_parameters([Parameter('use_sim_time', value=True)])
        message.clock.sec = start
        expect_ticks(advance_clock)
        message.clock.sec = 3
        expect_ticks(advance_clock)
        node.set_parameters([Parameter('use_sim_time', value=False)])
        expect_ticks(lambda: None)
    executor.shutdown()
    spinner.join(DEADLINE_S)
