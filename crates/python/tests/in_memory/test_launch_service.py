"""The launch service and its events, without a launch file."""

import asyncio
import threading

from launch import Event, LaunchDescription, LaunchService
from launch.actions import OpaqueFunction
from launch.event_queue import OUTPUT_BYTES_MAX, EventQueue
from launch.events import Shutdown
from launch.events.process import ProcessExited, ProcessStdout

DEADLINE_S = 30.0


def details(action):
    return {'action': action, 'name': 'p', 'cmd': ['p'], 'cwd': None, 'env': {}, 'pid': 1}


def test_output_waits_behind_other_events_and_in_front_of_its_process_s_end():
    async def run():
        queue = EventQueue()
        one, two = object(), object()
        output = ProcessStdout(text=b'x' * OUTPUT_BYTES_MAX, **details(one))
        end_of_one = ProcessExited(returncode=0, **details(one))
        end_of_two = ProcessExited(returncode=0, **details(two))
        shutdown = Shutdown(reason='test')
        resumed = []
        assert queue.has_room(lambda: resumed.append('early'))
        for event in (output, end_of_one, end_of_two, shutdown):
            queue.put_nowait(event)
        assert not queue.has_room(lambda: resumed.append('late'))
        assert not queue.has_only_output()
        got = [await queue.get() for _ in range(2)]
        assert got == [end_of_two, shutdown]
        assert resumed == []
        got = [queue.get_nowait() for _ in range(queue.qsize())]
        assert got == [output, end_of_one]
        assert resumed == ['late']
        assert queue.empty() and queue.has_only_output()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def test_another_thread_shuts_down_while_the_loop_waits_for_the_lock():
    service = LaunchService()
    is_called, is_done = threading.Event(), threading.Event()

    def shut_down():
        is_called.wait(DEADLINE_S)
        service.emit_event(Event())
        service.shutdown()
        is_done.set()

    def block_the_loop(context):
        # The thread must come through while this callback holds the loop.
        is_called.set()
        assert is_done.wait(DEADLINE_S)
        service.emit_event(Event())

    thread = threading.Thread(target=shut_down)
    thread.start()
    service.include_launch_description(
        LaunchDescription([OpaqueFunction(function=block_the_loop)]))
    assert service.run(shutdown_when_idle=False) == 0
    thread.join(DEADLINE_S)
    assert service.context.is_shutdown
