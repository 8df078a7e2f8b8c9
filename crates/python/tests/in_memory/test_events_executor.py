"""The events executor of later releases: groups, time-outs, shutdown, nested spins."""

import threading
import time

import pytest
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.task import Future

from test_executors import DEADLINE_S, context, node  # noqa: F401


@pytest.fixture
def executor(context, node):  # noqa: F811
    with EventsExecutor(context=context) as executor:
        executor.add_node(node)
        yield executor


def run_two_of_a_group(executor, node):  # noqa: F811
    """Return what was called of two callbacks of one group, whose first one waits."""
    called = []
    awaited = Future()

    async def wait():
        called.append('first begins')
        await awaited
        called.append('first ends')

    first = node.guard(wait)
    second = node.guard(lambda: called.append('second'))
    first.trigger()
    second.trigger()
    for _ in range(4):
        executor.spin_once(timeout_sec=0)
    before = list(called)
    awaited.set_result(None)
    executor.spin_until_future_complete(Future(), timeout_sec=0.05)
    return before, called


def test_a_coroutine_that_waits_keeps_nothing_from_running(executor, node):  # noqa: F811
    before, called = run_two_of_a_group(executor, node)
    assert before == ['first begins', 'second']
    assert called == ['first begins', 'second', 'first ends']


def test_other_executors_keep_the_group_of_a_coroutine(context, node):  # noqa: F811
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        before, called = run_two_of_a_group(executor, node)
    assert before == ['first begins']
    assert called == ['first begins', 'first ends', 'second']


def test_a_spin_within_a_callback_is_an_error_that_spin_raises(executor, node):  # noqa: F811
    node.guard(executor.spin_once).trigger()
    with pytest.raises(RuntimeError, match='already-spinning'):
        executor.spin(timeout_sec=DEADLINE_S)
    # The error has ended the spin.
    called = []
    node.guard(lambda: called.append(1)).trigger()
    executor.spin_once(timeout_sec=0)
    assert called == [1]


def test_spin_ends_at_its_time_out_and_runs_what_is_due_until_then(executor, node):  # noqa: F811
    called = []
    node.timer(0.001, lambda: called.append(time.monotonic()))
    began = time.monotonic()
    executor.spin(timeout_sec=0.05)
    assert time.monotonic() - began >= 0.05
    assert len(called) >= 2


def test_the_end_of_the_context_ends_spin_without_an_exception(executor, context):  # noqa: F811
    ended = []
    thread = threading.Thread(target=lambda: ended.append(executor.spin()))
    thread.start()
    context.shutdown()
    thread.join(DEADLINE_S)
    assert ended == [None]
    with pytest.raises(ExternalShutdownException):
        SingleThreadedExecutor.wait_for_ready_callbacks(executor, timeout_sec=0)


def test_a_future_that_a_callback_completes_ends_the_spin(executor, node):  # noqa: F811
    future = Future()
    node.timer(0.001, lambda: future.done() or future.set_result('done'))
    executor.spin_until_future_complete(future, timeout_sec=DEADLINE_S)
    assert future.result() == 'done'
    executor.spin_once_until_future_complete(future, timeout_sec=DEADLINE_S)
