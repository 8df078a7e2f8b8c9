"""Asynchronous nodes: callbacks in the event loop of asyncio."""

import asyncio
import sys
import threading

import pytest
import rclpy
from rclpy.parameter import Parameter
from rclpy.time import Time

from example_interfaces.srv import AddTwoInts
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import String

if sys.version_info < (3, 11):
    pytest.skip('asyncio has no TaskGroup', allow_module_level=True)

from rclpy.exceptions import TimeSourceChangedError  # noqa: E402
from rclpy.executors import ExternalShutdownException  # noqa: E402
from rclpy.experimental import AsyncNode  # noqa: E402
from rclpy.experimental import _async_turns  # noqa: E402

DEADLINE_S = 30
IDLE_TURNS_MAX = 60


@pytest.fixture(autouse=True)
def context():
    rclpy.init(args=[])
    yield
    rclpy.try_shutdown()


def run(main):
    """Run a coroutine function to its end, in time."""
    async def within():
        async with asyncio.timeout(DEADLINE_S):
            return await main()

    return asyncio.run(within())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


async def publish(node, topic, *texts):
    """Publish on a topic that a subscription of the process has."""
    publisher = node.create_publisher(String, topic, 10)
    await until(lambda: publisher.get_subscription_count() == 1)
    for text in texts:
        publisher.publish(String(data=text))


def test_a_timer_publishes_and_a_coroutine_gets_the_messages_and_their_info():
    heard = []

    async def main():
        async with AsyncNode('both') as node:
            publisher = node.create_publisher(String, 'chatter', 10)
            node.create_timer(0.01, lambda: publisher.publish(String(data='tick')))

            async def listen(message, info):
                await asyncio.sleep(0)
                heard.append((message.data, info['source_timestamp']))

            node.create_subscription(String, 'chatter', listen, 10)
            await until(lambda: len(heard) >= 3)

    run(main)
    assert heard[0][0] == 'tick' and heard[0][1] > 0


@pytest.mark.parametrize('concurrent, expected', [
    (False, ['begin a', 'end a', 'begin b', 'end b']),
    (True, ['begin a', 'begin b', 'end a', 'end b'])])
def test_callbacks_of_one_subscription_run_at_the_same_time_only_if_asked_for(
    concurrent, expected,
):
    log = []

    async def main():
        async with AsyncNode('listener') as node:
            proceed = asyncio.Event()

            async def listen(message):
                log.append(f'begin {message.data}')
                await proceed.wait()
                log.append(f'end {message.data}')

            node.create_subscription(String, 'words', listen, 10, concurrent=concurrent)
            # The other topic shows that the node goes on meanwhile.
            others = []
            node.create_subscription(String, 'others', others.append, 10)
            await publish(node, 'words', 'a', 'b')
            await publish(node, 'others', 'x')
            await until(lambda: others and len(log) == (2 if concurrent else 1))
            proceed.set()
            await until(lambda: len(log) == 4)

    run(main)
    assert log == expected


def test_nodes_of_one_loop_call_each_other_and_a_call_can_time_out():
    async def main():
        async with AsyncNode('server') as server, AsyncNode('client') as client:
            async def add(request, response):
                if request.a < 0:
                    await asyncio.sleep(DEADLINE_S)
                # A call within a callback: of the same node's client.
                response.sum = request.a + request.b
                return response

            server.create_service(AddTwoInts, 'add', add, concurrent=True)
            adder = client.create_client(AddTwoInts, 'add')
            await adder.wait_for_service()
            calls = [adder.call(AddTwoInts.Request(a=one, b=1)) for one in range(5)]
            results = [response.sum for response in await asyncio.gather(*calls)]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await adder.call(AddTwoInts.Request(a=-1))
            assert not adder._pending_requests
            waiting = asyncio.create_task(adder.call(AddTwoInts.Request(a=-1)))
            await asyncio.sleep(0)
            adder.destroy()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(RuntimeError, match='destroyed client'):
                await adder.call(AddTwoInts.Request())
            return results

    assert run(main) == [1, 2, 3, 4, 5]


def test_the_parameter_services_answer():
    async def main():
        async with AsyncNode('owner') as owner, AsyncNode('asker') as asker:
            owner.declare_parameter('rate', 2.5)
            client = asker.create_client(GetParameters, '/owner/get_parameters')
            await client.wait_for_service()
            await asker.wait_for_node('owner')
            response = await client.call(GetParameters.Request(names=['rate']))
            return response.values[0].double_value

    assert run(main) == 2.5


async def failing(message):
    raise ValueError(message.data)


def failing_at_once(message):
    raise ValueError(message.data)


@pytest.mark.parametrize('callback', [failing, failing_at_once])
def test_an_exception_of_a_callback_ends_the_block(callback):
    async def main():
        async with AsyncNode('listener') as node:
            node.create_subscription(String, 'words', callback, 10)
            await publish(node, 'words', 'wrong')
            await asyncio.sleep(DEADLINE_S)

    with pytest.raises(ExceptionGroup) as raised:
        run(main)
    error, = raised.value.exceptions
    assert type(error) is ValueError and str(error) == 'wrong'


def test_the_shutdown_of_the_context_ends_the_run():
    async def main():
        node = AsyncNode('node')
        threading.Timer(0.05, rclpy.shutdown).start()
        await node.run()

    with pytest.raises(ExceptionGroup) as raised:
        run(main)
    error, = raised.value.exceptions
    assert type(error) is ExternalShutdownException


def test_a_destroyed_node_ends_its_run_and_cannot_be_used_again():
    async def main():
        node = AsyncNode('node')
        node.create_timer(0.01, node.destroy_node)
        await node.run()
        for use in (
                lambda: node.create_timer(1.0, print),
                lambda: node.create_publisher(String, 'words', 10),
                lambda: node.create_subscription(String, 'words', print, 10),
                lambda: node.create_client(AddTwoInts, 'add'),
                lambda: node.create_service(AddTwoInts, 'add', print)):
            with pytest.raises(RuntimeError, match='on a destroyed node'):
                use()
        with pytest.raises(RuntimeError, match='cannot be reentered'):
            await node.run()
        with pytest.raises(RuntimeError, match='destroyed clock'):
            await node.get_clock().sleep(1)
        async with AsyncNode('other') as other:
            with pytest.raises(RuntimeError, match='already running'):
                await other.run()
            with pytest.raises(RuntimeError, match='would block'):
                other.create_rate(10.0)

    run(main)


def test_a_destroyed_subscription_cancels_its_callback():
    async def main():
        async with AsyncNode('listener') as node:
            state = []

            async def listen(message):
                state.append('begins')
                try:
                    await asyncio.sleep(DEADLINE_S)
                except asyncio.CancelledError:
                    state.append('cancelled')
                    raise

            subscription = node.create_subscription(String, 'words', listen, 10)
            await publish(node, 'words', 'one')
            await until(lambda: state)
            subscription.destroy()
            subscription.destroy()
            assert subscription not in list(node.subscriptions)
            await until(lambda: len(state) == 2)
            return state

    assert run(main) == ['begins', 'cancelled']


def test_the_clock_sleeps_in_simulated_time():
    async def main():
        async with AsyncNode('node') as node:
            clock = node.get_clock()
            await clock.sleep(0.001)
            await clock.sleep(0)
            sleep = asyncio.create_task(clock.sleep(DEADLINE_S))
            await asyncio.sleep(0)
            node.set_parameters([Parameter('use_sim_time', value=True)])
            with pytest.raises(TimeSourceChangedError):
                await sleep
            clock.set_ros_time_override(Time(seconds=10, clock_type=clock.clock_type))
            sleep = asyncio.create_task(clock.sleep(5.0))
            await asyncio.sleep(0)
            clock.set_ros_time_override(Time(seconds=14, clock_type=clock.clock_type))
            await asyncio.sleep(0)
            assert not sleep.done()
            clock.set_ros_time_override(Time(seconds=15, clock_type=clock.clock_type))
            await sleep
            sleep = asyncio.create_task(clock.sleep(5.0))
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await sleep

    run(main)


def test_an_idle_node_sleeps_and_one_that_is_busy_lets_others_run(monkeypatch):
    turns = []
    turn = _async_turns.AsyncTurns._turn
    monkeypatch.setattr(
        _async_turns.AsyncTurns, '_turn', lambda self: (turns.append(1), turn(self))[1])

    async def main():
        async with AsyncNode('node') as node:
            # Turns of discovery come first; `run` has the deadline.
            idle = IDLE_TURNS_MAX
            while idle >= IDLE_TURNS_MAX:
                turns.clear()
                await asyncio.sleep(0.5)
                idle = len(turns)
            called = []
            node.create_timer(0.0, lambda: called.append(1))
            for _ in range(10):
                await asyncio.sleep(0)
            await until(lambda: called)
            # A timer that is always due takes turns with this coroutine.
            at = len(called)
            for _ in range(3):
                await asyncio.sleep(0)
            return len(called) - at

    between = run(main)
    assert between <= 5 * _async_turns.CALLBACKS_PER_TURN_MAX
