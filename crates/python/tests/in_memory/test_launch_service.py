"""The launch service and its events, without a launch file."""

import asyncio

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
