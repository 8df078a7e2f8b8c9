"""The launch service and its events, without a launch file."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import types

from launch import Event, LaunchContext, LaunchDescription, LaunchService, child_process
from launch.actions import (
    ExecuteProcess, OpaqueCoroutine, OpaqueFunction, RegisterEventHandler, TimerAction,
)
from launch.actions import Shutdown as ShutDown
from launch.event_handlers import OnProcessExit, OnProcessIO, OnShutdown
from launch.event_queue import OUTPUT_BYTES_MAX, EventQueue
from launch.events import Shutdown
from launch.events.process import ProcessExited, ProcessStdout
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import (
    ComposableNodeContainer, LoadComposableNodes, load_composable_nodes,
)
from launch_ros.descriptions import ComposableNode
from launch_ros.parameter_descriptions import ParameterFile
import pytest
from rclpy.task import Future

from launch_files import folder  # noqa: F401

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


def test_each_launch_of_a_process_deletes_its_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    file = tmp_path / 'rate.yaml'
    file.write_text('{"/**": {"ros__parameters": {"rate": 2.0}}}')
    # It is used twice, and outlives both launches.
    description = ParameterFile(str(file), allow_substs=True)
    seen = []

    def evaluate(context):
        seen.append(description.evaluate(context))
        assert seen[-1].read_text() == file.read_text()
        return None if len(seen) == 1 else 1 / 0

    for code in (0, 1):
        service = LaunchService()
        service.include_launch_description(
            LaunchDescription([OpaqueFunction(function=evaluate)]))
        assert service.run() == code
        assert os.listdir(tmp_path) == ['rate.yaml']
    assert len(set(seen)) == 2


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


def test_signals_interrupt_code_of_the_main_thread_alone():
    context = LaunchContext()
    context._interrupt()
    is_inside, is_checked = threading.Event(), threading.Event()

    def run():
        with context._interruptible():
            is_inside.set()
            is_checked.wait(DEADLINE_S)

    thread = threading.Thread(target=run)
    thread.start()
    assert is_inside.wait(DEADLINE_S)
    context._interrupt()
    is_checked.set()
    thread.join(DEADLINE_S)
    with pytest.raises(KeyboardInterrupt):
        with context._interruptible():
            context._interrupt()
    context._interrupt()


class FakeClient:
    """A client of the service that loads components."""

    srv_name = '/c/_container/load_node'

    def __init__(self, is_ready, is_loaded=True):
        self.service_is_ready = is_ready
        self.response = types.SimpleNamespace(
            success=is_loaded, full_node_name='/a', error_message='no such class')
        self.calls = 0

    def call_async(self, request):
        self.calls += 1
        future = Future()
        future.set_result(self.response)
        return future


class FakeNode:
    """A node that keeps its clients."""

    def __init__(self, make_client):
        self.make_client = make_client
        self.made, self.destroyed = [], []

    def create_client(self, kind, name):
        self.made.append(self.make_client())
        return self.made[-1]

    def destroy_client(self, client):
        self.destroyed.append(client)


@pytest.fixture
def loading(monkeypatch):
    """Return a function that gives actions a node."""
    service = types.ModuleType('composition_interfaces.srv')
    service.LoadNode = types.SimpleNamespace(Request=types.SimpleNamespace)
    monkeypatch.setitem(
        sys.modules, 'composition_interfaces', types.ModuleType('composition_interfaces'))
    monkeypatch.setitem(sys.modules, 'composition_interfaces.srv', service)

    def use(make_client):
        node = FakeNode(make_client)
        monkeypatch.setattr(load_composable_nodes, 'get_ros_node', lambda context: node)
        return node

    return use


def test_a_container_that_crashes_before_its_first_load_gets_its_components_once(
    tmp_path, loading,
):
    program = tmp_path / 'container'
    program.write_text(
        f'#!/bin/sh\ncd {tmp_path}\n[ -e one ] && touch two && exec sleep 1000\ntouch one\nexit 1\n')
    program.chmod(0o755)
    node = loading(lambda: FakeClient((tmp_path / 'two').exists))
    service = LaunchService()

    async def end_when_loaded(context):
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while len(node.destroyed) < 2 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        service.shutdown(force_sync=True)

    service.include_launch_description(LaunchDescription([
        ComposableNodeContainer(
            name='c', namespace='', executable=str(program), respawn=True,
            composable_node_descriptions=[
                ComposableNode(package='p', plugin='p::A', name='a')]),
        OpaqueCoroutine(coroutine=end_when_loaded)]))
    service.run()
    assert [client.calls for client in node.made] == [0, 1]
    assert node.destroyed == node.made
    assert not service.context._is_failed


@pytest.mark.parametrize('is_ended_by_launch', [False, True])
def test_a_container_that_ends_before_its_first_load_makes_the_launch_fail(
    tmp_path, loading, is_ended_by_launch,
):
    program = tmp_path / 'container'
    program.write_text(f'#!/bin/sh\nexec sleep {1000 if is_ended_by_launch else 0}\n')
    program.chmod(0o755)
    loading(lambda: FakeClient(lambda: False))
    service = LaunchService()
    service.include_launch_description(LaunchDescription([ComposableNodeContainer(
        name='c', namespace='', executable=str(program),
        composable_node_descriptions=[ComposableNode(package='p', plugin='p::A', name='a')]),
        *([TimerAction(period=0.1, actions=[ShutDown()])] if is_ended_by_launch else ())]))
    assert service.run() == 0
    assert service.context._is_failed is not is_ended_by_launch


def test_a_component_that_is_not_loaded_makes_the_launch_fail(loading):
    node = loading(lambda: FakeClient(lambda: True, is_loaded=False))
    service = LaunchService()
    service.include_launch_description(LaunchDescription([LoadComposableNodes(
        target_container='/c',
        composable_node_descriptions=[ComposableNode(package='p', plugin='p::A', name='a')])]))
    service.run()
    assert service.context._is_failed
    assert len(node.destroyed) == 1


def test_a_client_is_not_used_after_the_end_of_the_launch(loading):
    service = LaunchService()

    def is_ready():
        assert not service.context.is_shutdown
        service.shutdown(force_sync=True)
        return True

    node = loading(lambda: FakeClient(is_ready))
    service.include_launch_description(LaunchDescription([LoadComposableNodes(
        target_container='/c',
        composable_node_descriptions=[ComposableNode(package='p', plugin='p::A', name='a')])]))
    assert service.run() == 0
    assert [client.calls for client in node.made] == [0]


def test_a_process_whose_end_cannot_be_seen_is_killed_and_makes_the_launch_fail(monkeypatch):
    started = []

    def fail(pid, flags=0):
        started.append(pid)
        raise OSError(errno.EMFILE, 'too many open files')

    service = LaunchService()
    service.include_launch_description(
        LaunchDescription([ExecuteProcess(cmd=['sleep', '1000'])]))
    before = len(os.listdir('/proc/self/fd'))
    monkeypatch.setattr(child_process.os, 'pidfd_open', fail)
    assert service.run() == 0
    assert service.context._is_failed
    pid, *_ = started
    assert not os.path.exists(f'/proc/{pid}')
    # The loop that this thread keeps has three.
    assert len(os.listdir('/proc/self/fd')) <= before + 3


TWO_RUNS = '''
import asyncio, atexit, gc, sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

loops = []
make_loop = asyncio.new_event_loop
asyncio.new_event_loop = lambda: loops.append(make_loop()) or loops[-1]
# Of these functions Python calls the last one first.
atexit.register(lambda: print('closed:', [loop.is_closed() for loop in loops]))
for _ in range(2):
    service = LaunchService()
    service.include_launch_description(LaunchDescription([
        IncludeLaunchDescription(PythonLaunchDescriptionSource('a.launch.py'))]))
    assert service.run() == 0
    del service
    gc.collect()
'''

PROCESSES_OF_ALL_KINDS = '''
from launch import LaunchDescription
from launch.actions import ExecuteProcess, Shutdown, TimerAction
from launch.substitutions import Command

def generate_launch_description():
    return LaunchDescription([
        ExecuteProcess(cmd=['cat'], output='both', emulate_tty=True),
        ExecuteProcess(cmd=['sh', '-c', 'trap "" INT; cat'], sigterm_timeout='0.1'),
        ExecuteProcess(cmd=['echo', Command('echo word')], shell=True, output='own_log'),
        ExecuteProcess(cmd=['true'], respawn=True, respawn_max_retries=2),
        TimerAction(period=0.3, actions=[Shutdown()])])
'''


def test_a_launch_leaves_no_file_and_no_event_loop_open(folder):  # noqa: F811
    folder.write('a.launch.py', PROCESSES_OF_ALL_KINDS)
    ended = subprocess.run(
        [sys.executable, '-X', 'dev', '-c', TWO_RUNS], cwd=folder.path,
        env=folder.environment(), capture_output=True, text=True, timeout=2 * DEADLINE_S)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith('closed: [True]\n')
    assert 'Warning' not in ended.stderr


WAITS = [
    'sh', '-c', 'trap "exit 0" INT; trap "exit 3" TERM; echo ready; while :; do sleep 0.05; done']


def run_until_ready(*actions):
    """Shut down once two processes wait; return the launch's exit code, and theirs."""
    service = LaunchService()
    pids, codes = [], []

    def note(event):
        pids.append(event.pid)
        return ShutDown() if len(pids) == 2 else None

    def note_end(event, context):
        codes.append(event.returncode)

    def kill():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    service.include_launch_description(LaunchDescription([
        *actions,
        RegisterEventHandler(OnProcessIO(on_stdout=note)),
        RegisterEventHandler(OnProcessExit(on_exit=note_end)),
    ]))
    deadline = threading.Timer(DEADLINE_S / 2, kill)
    deadline.start()
    try:
        return service.run(), codes
    finally:
        deadline.cancel()


@pytest.mark.parametrize('timeouts, expected', [
    (('inf', '5'), [0, 0]),
    (('1e30', 'inf'), [0, 0]),
    (('abc', '5'), [0, 0]),
    ((LaunchConfiguration('not_there'), '5'), [0, 0]),
    (('5', ''), [0, 0]),
    # At once, as in ROS 2.
    (('-1', '5'), None),
    (('nan', '5'), None),
])
def test_a_shutdown_ends_processes_whatever_their_timeouts_are(timeouts, expected):
    sigterm, sigkill = timeouts
    code, codes = run_until_ready(
        ExecuteProcess(cmd=WAITS, sigterm_timeout=sigterm, sigkill_timeout=sigkill),
        ExecuteProcess(cmd=WAITS))
    assert code == 0
    assert len(codes) == 2 and -signal.SIGKILL not in codes
    assert expected is None or codes == expected


def raise_error(*_):
    raise RuntimeError('the handler fails')


@pytest.mark.parametrize('on_shutdown', [
    raise_error,
    lambda event, context: 'no action',
    [OpaqueFunction(function=raise_error)],
])
def test_a_shutdown_ends_processes_although_handlers_of_it_fail(on_shutdown):
    code, codes = run_until_ready(
        ExecuteProcess(cmd=WAITS), ExecuteProcess(cmd=WAITS),
        RegisterEventHandler(OnShutdown(on_shutdown=on_shutdown)))
    assert (code, codes) == (1, [0, 0])
