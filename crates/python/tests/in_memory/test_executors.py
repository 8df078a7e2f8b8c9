"""Executors on entities without a node: order, coroutines, groups, exceptions, shutdown."""

import threading

import fake_native
import pytest
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.context import Context
from rclpy.executors import (
    ExternalShutdownException, MultiThreadedExecutor, ShutdownException, SingleThreadedExecutor,
)
from rclpy.guard_condition import GuardCondition
from rclpy.task import Future
from rclpy.timer import Timer

DEADLINE_S = 10


class Entities:
    """The part of a node that executors use."""

    def __init__(self, context):
        self.context = context
        self.executor = None
        self.group = MutuallyExclusiveCallbackGroup()
        self._entities_version = 1
        self._waitables, self._timers, self._subscriptions = [], [], []
        self._guards, self._clients, self._services = [], [], []

    def guard(self, callback, group=None):
        guard = GuardCondition(callback, group or self.group, context=self.context)
        self._guards.append(guard)
        self.changed()
        return guard

    def timer(self, period_s, callback, group=None):
        timer = Timer(
            callback, group or self.group, int(period_s * 1e9), Clock(), context=self.context)
        self._timers.append(timer)
        self.changed()
        return timer

    def changed(self):
        self._entities_version += 1
        if self.executor is not None:
            self.executor.wake()


@pytest.fixture
def context():
    context = Context()
    context.init(args=[])
    yield context
    context.try_shutdown()


@pytest.fixture
def node(context):
    return Entities(context)


@pytest.fixture
def executor(context, node):
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        yield executor


def test_spin_once_runs_one_callback_in_the_order_of_creation(executor, node):
    called = []
    first = node.guard(lambda: called.append('first'))
    second = node.guard(lambda: called.append('second'))
    second.trigger()
    first.trigger()
    executor.spin_once(timeout_sec=0)
    assert called == ['first']
    executor.spin_once(timeout_sec=0)
    assert called == ['first', 'second']
    executor.spin_once(timeout_sec=0)
    assert called == ['first', 'second']


def test_timers_come_before_guard_conditions(executor, node):
    called = []
    node.guard(lambda: called.append('guard')).trigger()
    node.timer(0.0, lambda: called.append('timer'))
    executor.spin_once(timeout_sec=0)
    assert called == ['timer']


def test_an_exception_of_a_callback_leaves_spin_and_frees_its_group(executor, node):
    def fail():
        raise KeyError('from the callback')

    guard = node.guard(fail)
    guard.trigger()
    with pytest.raises(KeyError, match='from the callback'):
        executor.spin_once(timeout_sec=0)
    assert node.group.can_execute(guard)


def test_a_coroutine_holds_its_group_until_it_returns(executor, node):
    future = Future()
    called = []

    async def wait():
        called.append('begin')
        await future
        called.append('end')

    node.guard(wait).trigger()
    other = node.guard(lambda: called.append('other'))
    executor.spin_once(timeout_sec=0)
    other.trigger()
    executor.spin_once(timeout_sec=0)
    assert called == ['begin']
    future.set_result(None)
    executor.spin_once(timeout_sec=0)
    executor.spin_once(timeout_sec=0)
    assert called == ['begin', 'end', 'other']


def test_a_task_that_awaits_a_future_is_not_stepped_before_it_is_done(executor):
    future = Future()
    steps = []

    class Counted:
        def __await__(self):
            steps.append('await')
            return future.__await__()

    async def wait():
        return await Counted()

    task = executor.create_task(wait)
    for _ in range(5):
        executor.spin_once(timeout_sec=0)
    assert steps == ['await'] and not executor._ready
    threading.Thread(target=future.set_result, args=(7,)).start()
    executor.spin_until_future_complete(task, timeout_sec=DEADLINE_S)
    assert task.result() == 7


def test_the_newest_task_runs_first(executor):
    ran = []
    executor.create_task(ran.append, 'old')
    executor.create_task(ran.append, 'new')
    executor.spin_once(timeout_sec=0)
    assert ran == ['new']


def test_done_callbacks_run_as_tasks_of_the_executor(executor):
    future = Future(executor=executor)
    seen = []
    future.add_done_callback(lambda done: seen.append(done.result()))
    future.set_result('result')
    assert seen == []
    executor.spin_once(timeout_sec=0)
    assert seen == ['result']


def test_an_entity_created_while_spinning_wakes_the_executor(executor, node):
    done = Future()
    thread = threading.Thread(
        target=executor.spin_until_future_complete, args=(done, DEADLINE_S))
    thread.start()
    node.guard(lambda: done.set_result('called')).trigger()
    thread.join(DEADLINE_S)
    assert done.result() == 'called'


def test_an_entity_destroyed_after_it_became_ready_is_skipped(executor, node):
    called = []
    first = node.guard(lambda: called.append('first'))
    second = node.guard(lambda: called.append('second'))
    first.trigger()
    second.trigger()
    executor.spin_once(timeout_sec=0)
    second.destroy()
    node._guards.remove(second)
    node.changed()
    executor.spin_once(timeout_sec=0)
    assert called == ['first']


def test_a_removed_node_is_not_called(executor, node):
    called = []
    node.guard(lambda: called.append('called')).trigger()
    executor.remove_node(node)
    executor.spin_once(timeout_sec=0)
    assert called == []


def test_shutdown_of_the_context_ends_spin(context, executor, node):
    node.timer(0.0, context.shutdown)
    executor.spin()
    node_of_dead_context = executor
    with pytest.raises(ExternalShutdownException):
        node_of_dead_context.spin_once(timeout_sec=0)


def test_wait_for_ready_callbacks_after_shutdown(context):
    executor = SingleThreadedExecutor(context=context)
    executor.shutdown()
    with pytest.raises(ShutdownException):
        executor.wait_for_ready_callbacks()


def test_wait_for_ready_callbacks_returns_a_task_that_counts_as_running(executor, node):
    called = []
    guard = node.guard(lambda: called.append('called'))
    guard.trigger()
    task, entity, owner = executor.wait_for_ready_callbacks(timeout_sec=0)
    assert (entity, owner) == (guard, node)
    assert not node.group.can_execute(guard)
    task()
    assert called == ['called'] and node.group.can_execute(guard)


def test_users_callback_group_is_asked_before_each_callback(executor, node):
    class Closed(ReentrantCallbackGroup):
        is_open = False

        def can_execute(self, entity):
            return self.is_open

    group = Closed()
    called = []
    node.guard(lambda: called.append('called'), group).trigger()
    executor.spin_once(timeout_sec=0)
    assert called == []
    group.is_open = True
    executor.spin_once(timeout_sec=0)
    assert called == ['called']


def test_threads_run_callbacks_of_a_reentrant_group_together(context, node):
    barrier = threading.Barrier(2, timeout=DEADLINE_S)
    group = ReentrantCallbackGroup()
    guards = [node.guard(barrier.wait, group) for _ in range(2)]
    with MultiThreadedExecutor(2, context=context) as executor:
        executor.add_node(node)
        for guard in guards:
            guard.trigger()
        executor.spin_once(timeout_sec=DEADLINE_S)
        executor.spin_once(timeout_sec=DEADLINE_S)
    assert not barrier.broken


def test_threads_never_run_two_callbacks_of_an_exclusive_group(context, node):
    active = []
    overlaps = []
    count = Future()
    lock = threading.Lock()
    calls = []

    def callback():
        with lock:
            overlaps.append(len(active))
            active.append(1)
        with lock:
            active.pop()
            calls.append(1)
            if len(calls) == 200:
                count.set_result(None)

    for _ in range(4):
        node.timer(0.0, callback)
    with MultiThreadedExecutor(4, context=context) as executor:
        executor.add_node(node)
        executor.spin_until_future_complete(count, timeout_sec=DEADLINE_S)
    assert count.done() and not any(overlaps)


def test_threads_take_no_more_than_they_can_run(context, node):
    release = threading.Event()
    started = threading.Semaphore(0)

    def callback():
        started.release()
        release.wait(DEADLINE_S)

    node.timer(0.0, callback, ReentrantCallbackGroup())
    executor = MultiThreadedExecutor(2, context=context)
    executor.add_node(node)
    for _ in range(2):
        executor.spin_once(timeout_sec=DEADLINE_S)
        assert started.acquire(timeout=DEADLINE_S)
    executor.spin_once(timeout_sec=0)
    assert executor._executor._work_queue.qsize() == 0
    release.set()
    assert executor.shutdown(timeout_sec=DEADLINE_S)


def test_an_exception_in_a_thread_is_raised_by_a_later_turn(context, node):
    def fail():
        raise ValueError('in a thread')

    node.guard(fail).trigger()
    with MultiThreadedExecutor(2, context=context) as executor:
        executor.add_node(node)
        # The thread may be done before the first call returns.
        with pytest.raises(ValueError, match='in a thread'):
            executor.spin_once(timeout_sec=DEADLINE_S)
            executor.spin_once(timeout_sec=DEADLINE_S)


def test_a_poller_is_given_the_entities_once(executor, node, monkeypatch):
    calls = []
    original = fake_native.Poller.set_entities

    def counted(self, entities):
        calls.append(1)
        return original(self, entities)

    monkeypatch.setattr(fake_native.Poller, 'set_entities', counted)
    guard = node.guard(lambda: None)
    for _ in range(10):
        guard.trigger()
        executor.spin_once(timeout_sec=0)
    assert len(calls) == 1


def test_turns_leave_nothing_in_the_future_they_wait_for(executor, node):
    future = Future()
    count = []

    def callback():
        count.append(1)
        if len(count) == 50:
            future.set_result(None)

    timer = node.timer(0.0, callback)
    for _ in range(20):
        executor.spin_once_until_future_complete(future, 0)
    assert len(future._wakers) == 1
    executor.spin_until_future_complete(future, DEADLINE_S)
    timer.cancel()
    assert len(count) == 50


def test_a_future_of_another_library_ends_spin(executor):
    from concurrent.futures import Future as ThreadFuture
    future = ThreadFuture()
    threading.Thread(target=future.set_result, args=(1,)).start()
    executor.spin_until_future_complete(future, DEADLINE_S)
    assert future.done()
