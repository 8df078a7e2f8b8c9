"""The loop of the native module that runs plain callbacks, and what goes back to Python."""

import threading

import pytest
import rclpy
from rclpy.callback_groups import CallbackGroup, ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.task import Future

from std_msgs.msg import String

DEADLINE_S = 30.0


class Enough(Exception):
    """Ends a spin."""


class Late(Exception):
    """Nothing has ended a spin."""


def enough(*_):
    raise Enough


def late():
    raise Late


@pytest.fixture
def node():
    rclpy.init(args=[])
    node = rclpy.create_node('spinner')
    # A group of its own, so that nothing keeps it from running.
    node.create_timer(DEADLINE_S, late, ReentrantCallbackGroup())
    yield node
    node.destroy_node()
    rclpy.try_shutdown()


@pytest.fixture
def executor(node):
    with SingleThreadedExecutor() as executor:
        executor.add_node(node)
        # The entities are registered; the next turn is the native module's.
        executor.spin_once(timeout_sec=0)
        assert not executor._is_stale
        yield executor


def until_enough(executor):
    with pytest.raises(Enough):
        executor.spin()


def test_an_exception_leaves_what_else_is_ready_to_the_next_turn(node, executor):
    called = []
    first = node.create_guard_condition(enough)
    second = node.create_guard_condition(lambda: called.append('second'))
    executor.spin_once(timeout_sec=0)
    for spin in (executor.spin, executor.spin_once):
        second.trigger()
        first.trigger()
        with pytest.raises(Enough):
            spin()
        assert called == []
        executor.spin_once(timeout_sec=0)
        assert called == ['second']
        called.clear()
        executor.spin_once(timeout_sec=0)
        assert called == []


def test_spin_once_runs_one_callback_and_returns_at_its_time_out(node, executor):
    called = []
    guards = [node.create_guard_condition(lambda name=name: called.append(name))
              for name in ('first', 'second')]
    executor.spin_once(timeout_sec=0)
    for guard in guards:
        guard.trigger()
    executor.spin_once(timeout_sec=DEADLINE_S)
    assert called == ['first']
    executor.spin_once(timeout_sec=0)
    assert called == ['first', 'second']
    executor.spin_once(timeout_sec=0.01)
    executor.spin_once(timeout_sec=0)
    assert called == ['first', 'second']


@pytest.mark.parametrize('group', [None, ReentrantCallbackGroup])
def test_a_coroutine_goes_on_when_its_future_is_done(node, executor, group):
    log = []
    awaited = Future()
    group = group and group()

    async def wait():
        log.append('begins')
        await awaited
        log.append('ends')

    node.create_guard_condition(wait, group).trigger()
    # Of the same group if that is the default one, which is mutually exclusive.
    waiting = node.create_guard_condition(lambda: log.append('other'), group)
    waiting.trigger()

    def set_result():
        if not awaited.done():
            # The timer may be due before the other callback.
            if group is None or 'other' in log:
                awaited.set_result(None)
        elif len(log) == 3:
            raise Enough

    node.create_timer(0.01, set_result, ReentrantCallbackGroup())
    until_enough(executor)
    assert log == (['begins', 'other', 'ends'] if group else ['begins', 'ends', 'other'])


def test_a_group_of_the_user_is_asked_each_time(node, executor):
    class Counting(CallbackGroup):
        def __init__(self):
            super().__init__()
            self.calls = []

        def can_execute(self, entity):
            self.calls.append('can')
            return True

        def beginning_execution(self, entity):
            self.calls.append('begin')
            return True

        def ending_execution(self, entity):
            self.calls.append('end')

    group = Counting()
    called = []

    def call():
        called.append(1)
        if len(called) == 3:
            raise Enough

    node.create_timer(0.001, call, group)
    until_enough(executor)
    assert group.calls == ['can', 'begin', 'end'] * 3


def test_a_callback_may_add_and_destroy_entities(node, executor):
    called = []

    def first():
        called.append('first')
        second.destroy()
        node.destroy_guard_condition(third)
        node.create_timer(0.0, enough)

    guard = node.create_guard_condition(first)
    second = node.create_guard_condition(lambda: called.append('second'))
    third = node.create_guard_condition(lambda: called.append('third'))
    executor.spin_once(timeout_sec=0)
    for each in (guard, second, third):
        each.trigger()
    until_enough(executor)
    assert called == ['first']


def test_messages_come_alone_with_their_info_or_as_bytes(node, executor):
    got = {}
    publisher = node.create_publisher(String, 'words', 10)
    node.create_subscription(String, 'words', lambda message: got.update(plain=message), 10)
    node.create_subscription(
        String, 'words', lambda message, info: got.update(both=(message, info)), 10)
    node.create_subscription(String, 'words', lambda data: got.update(raw=data), 10, raw=True)

    def publish():
        publisher.publish(String(data='word'))
        if len(got) == 3:
            raise Enough

    node.create_timer(0.01, publish)
    until_enough(executor)
    assert got['plain'].data == got['both'][0].data == 'word'
    assert got['both'][1]['source_timestamp'] > 0
    assert type(got['raw']) is bytes and got['raw'].endswith(b'word\0')


def test_a_new_callback_of_a_subscription_and_a_timer_counts_at_once(node, executor):
    got = []
    publisher = node.create_publisher(String, 'words', 10)

    def with_info(message, info):
        got.append(info)
        timer.callback = enough

    def plain(message):
        got.append(message)
        subscription.callback = with_info

    subscription = node.create_subscription(String, 'words', plain, 10)
    timer = node.create_timer(0.01, lambda: publisher.publish(String(data='word')))
    until_enough(executor)
    assert got[0].data == 'word' and got[1]['source_timestamp'] > 0


@pytest.mark.parametrize('spin', ['spin', 'spin_once'])
def test_a_shutdown_during_the_wait_is_an_exception_and_in_a_callback_none(node, executor, spin):
    thread = threading.Timer(0.05, rclpy.shutdown)
    thread.start()
    with pytest.raises(ExternalShutdownException):
        while True:
            getattr(executor, spin)()
    thread.join()


def test_a_shutdown_in_a_callback_ends_the_spin(node, executor):
    node.create_timer(0.0, rclpy.shutdown)
    assert executor.spin() is None


def test_a_callback_may_shut_its_executor_down(node, executor):
    node.create_timer(0.0, executor.shutdown)
    assert executor.spin() is None


def test_another_thread_ends_the_spin_by_a_shutdown_of_the_executor(node, executor):
    thread = threading.Timer(0.05, executor.shutdown)
    thread.start()
    assert executor.spin() is None
    thread.join()


def test_two_executors_take_an_entity_from_each_other(node, executor):
    """An entity wakes the poller that waited for it last, also when that changes often."""
    got = []
    publisher = node.create_publisher(String, 'words', 10)
    node.create_subscription(String, 'words', lambda message: got.append(message.data), 10)
    with SingleThreadedExecutor() as other:
        for number in range(20):
            chosen, text = (executor, other)[number % 2], str(number)
            chosen.add_node(node)
            sender = threading.Timer(0.005, lambda: publisher.publish(String(data=text)))
            sender.start()
            while got[-1:] != [text]:
                chosen.spin_once(timeout_sec=DEADLINE_S)
            sender.join()
    assert len(got) == 20
