"""Ctrl-C in every state of a program: it ends at once, cleanly, and nothing is printed."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

# Longer than any program takes on a busy machine, and shorter than the sleeps in them.
DEADLINE_S = 60

BEGIN = '''
import os, sys, threading, time
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import (
    ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor)
from example_interfaces.action import Fibonacci
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String


def ready():
    print('ready', flush=True)


def ready_when_spinning(node, then=lambda: None):
    """Print the word in the first turn of an executor."""
    first_turn = threading.Lock()

    def call():
        timer.cancel()
        # Another thread of the executor may have begun before the timer was canceled.
        if first_turn.acquire(blocking=False):
            ready()
            then()

    timer = node.create_timer(0.0, call, ReentrantCallbackGroup())


def forever():
    time.sleep(600)


def spin_in_thread(node, executor=None):
    def spin():
        try:
            rclpy.spin(node, executor)
        except ExternalShutdownException:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    return thread


def state(node):
'''

END = '''

rclpy.init(args=[])
node = rclpy.create_node('interrupted')
ending = None
try:
    state(node)
except KeyboardInterrupt as error:
    ending = type(error).__name__
assert not rclpy.ok()
node.destroy_node()
rclpy.try_shutdown()
print(ending, flush=True)
'''

STATES = {
    'initialized': '''
        ready()
        forever()
    ''',
    'idle spin': '''
        ready_when_spinning(node)
        rclpy.spin(node)
    ''',
    'spin_once': '''
        ready_when_spinning(node)
        while True:
            rclpy.spin_once(node)
    ''',
    'spin_once with a time-out': '''
        ready_when_spinning(node)
        while True:
            rclpy.spin_once(node, timeout_sec=0.001)
    ''',
    'callback that sleeps': '''
        ready_when_spinning(node, forever)
        rclpy.spin(node)
    ''',
    'callback that computes': '''
        def compute():
            while True:
                pass

        ready_when_spinning(node, compute)
        rclpy.spin(node)
    ''',
    'coroutine that waits': '''
        from rclpy.task import Future

        async def wait():
            timer.cancel()
            ready()
            await Future()

        timer = node.create_timer(0.0, wait)
        rclpy.spin(node)
    ''',
    'wait for a service': '''
        client = node.create_client(AddTwoInts, 'nobody')
        ready()
        client.wait_for_service()
    ''',
    'request without an answer': '''
        client = node.create_client(AddTwoInts, 'nobody')
        ready_when_spinning(node)
        rclpy.spin_until_future_complete(node, client.call_async(AddTwoInts.Request()))
    ''',
    'blocking call': '''
        client = node.create_client(AddTwoInts, 'nobody')
        thread = spin_in_thread(node)
        try:
            ready()
            client.call(AddTwoInts.Request())
        finally:
            thread.join()
    ''',
    'wait for an action server': '''
        client = ActionClient(node, Fibonacci, 'nobody')
        ready()
        client.wait_for_server()
    ''',
    'action that executes': '''
        def execute(goal):
            ready()
            forever()

        ActionServer(node, Fibonacci, 'fibonacci', execute)
        client = ActionClient(node, Fibonacci, 'fibonacci')
        rclpy.spin_until_future_complete(node, client.send_goal_async(Fibonacci.Goal()))
        rclpy.spin(node)
    ''',
    'result of an action': '''
        async def execute(goal):
            from rclpy.task import Future
            ready()
            await Future()

        ActionServer(node, Fibonacci, 'fibonacci', execute)
        client = ActionClient(node, Fibonacci, 'fibonacci')
        sent = client.send_goal_async(Fibonacci.Goal())
        rclpy.spin_until_future_complete(node, sent)
        rclpy.spin_until_future_complete(node, sent.result().get_result_async())
    ''',
    'threads of an executor': '''
        executor = MultiThreadedExecutor(2)
        ready_when_spinning(node)
        rclpy.spin(node, executor)
    ''',
    'callback in a thread of an executor': '''
        def call():
            while rclpy.ok():
                time.sleep(0.01)

        executor = MultiThreadedExecutor(2)
        ready_when_spinning(node, call)
        rclpy.spin(node, executor)
    ''',
    'executor of events': '''
        from rclpy.experimental import EventsExecutor
        ready_when_spinning(node)
        rclpy.spin(node, EventsExecutor())
    ''',
    'publish loop': '''
        publisher = node.create_publisher(String, 'chatter', 10)
        node.create_subscription(String, 'chatter', print, 10)
        ready()
        while True:
            publisher.publish(String(data='x' * 1000))
    ''',
    'sleep of a rate': '''
        rate = node.create_rate(0.001)
        thread = spin_in_thread(node)
        try:
            ready()
            rate.sleep()
        finally:
            thread.join()
    ''',
    'sleep of a clock': '''
        from rclpy.duration import Duration
        ready()
        node.get_clock().sleep_for(Duration(seconds=600))
        # The shutdown ends the sleep; the exception follows.
        forever()
    ''',
    'wait for a message': '''
        from rclpy.wait_for_message import wait_for_message
        ready()
        wait_for_message(String, node, 'chatter')
    ''',
    'shutdown': '''
        def stop():
            ready()
            forever()

        rclpy.get_default_context().on_shutdown(stop)
        rclpy.shutdown()
    ''',
}


def start(program, *words):
    return subprocess.Popen(
        [sys.executable, '-X', 'dev', '-X', 'faulthandler', '-c', program, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(child):
    """Send Ctrl-C once the program is ready; return its status, output and errors."""
    try:
        first = child.stdout.readline()
        assert first == 'ready\n', first + child.stderr.read()
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=DEADLINE_S)
        return child.returncode, output.strip(), errors
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize('state', STATES)
def test_ctrl_c_raises_in_the_main_thread_and_the_program_ends(state):
    body = textwrap.indent(textwrap.dedent(STATES[state]), '    ')
    assert interrupt(start(BEGIN + body + END)) == (0, 'KeyboardInterrupt', '')


def test_ctrl_c_before_init_is_left_to_python():
    program = '''
import time, rclpy
try:
    print('ready', flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    rclpy.init(args=[])
    rclpy.create_node('later').destroy_node()
    print('later', rclpy.ok())
    rclpy.shutdown()
'''
    assert interrupt(start(program)) == (0, 'later True', '')


def test_ctrl_c_after_shutdown_is_left_to_python():
    program = '''
import time, rclpy
rclpy.init(args=[])
rclpy.create_node('before').destroy_node()
rclpy.shutdown()
try:
    print('ready', flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print('after')
'''
    assert interrupt(start(program)) == (0, 'after', '')


def test_ctrl_c_of_asyncio_ends_its_loop_and_leaves_the_context():
    # asyncio puts a handler of its own in the place of ours.
    program = '''
import asyncio, rclpy

async def run():
    # In development mode asyncio complains of a step that a busy machine makes slow.
    asyncio.get_running_loop().slow_callback_duration = 60.0
    print('ready', flush=True)
    while True:
        rclpy.spin_once(node, timeout_sec=0.0)
        await asyncio.sleep(0.001)

rclpy.init(args=[])
node = rclpy.create_node('interrupted')
try:
    asyncio.run(run())
except KeyboardInterrupt:
    print('interrupted')
node.destroy_node()
rclpy.try_shutdown()
'''
    assert interrupt(start(program)) == (0, 'interrupted', '')


THREADS = {
    'rate': '''
        rate = node.create_rate(0.001)
        ready()
        rate.sleep()
    ''',
    'blocking call': '''
        client = node.create_client(AddTwoInts, 'nobody')
        ready()
        client.call(AddTwoInts.Request())
    ''',
    'blocking call with a time-out': '''
        client = node.create_client(AddTwoInts, 'nobody')
        ready()
        client.call(AddTwoInts.Request(), timeout_sec=600)
    ''',
}


@pytest.mark.parametrize('name', THREADS)
def test_ctrl_c_ends_waits_of_other_threads(name):
    body = '''
    from rclpy.exceptions import ROSInterruptException

    def wait():
        try:
            work()
        except ROSInterruptException:
            print('woken', flush=True)

    thread = threading.Thread(target=wait)
    try:
        thread.start()
        rclpy.spin(node)
    finally:
        thread.join()

def work():
''' + textwrap.indent(textwrap.dedent(THREADS[name]), '    ')
    assert interrupt(start(BEGIN + body + END)) == (0, 'woken\nKeyboardInterrupt', '')


def test_ctrl_c_at_exit_ends_the_program():
    program = '''
import atexit, time, rclpy

@atexit.register
def last():
    try:
        print('ready', flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print('last')

rclpy.init(args=[])
node = rclpy.create_node('left')
node.create_timer(0.001, lambda: None)
rclpy.spin_once(node)
'''
    assert interrupt(start(program)) == (0, 'last', '')


def test_a_second_ctrl_c_interrupts_what_the_first_one_began():
    program = BEGIN + '''
    ready_when_spinning(node)
    try:
        rclpy.spin(node)
    finally:
        ready()
        forever()
''' + END
    child = start(program)
    try:
        for _ in range(2):
            assert child.stdout.readline() == 'ready\n'
            child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=DEADLINE_S)
        assert (child.returncode, output.strip(), errors) == (0, 'KeyboardInterrupt', '')
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize('module', [
    'rclpy', 'pteros._native', 'rclpy.node', 'rclpy.executors', 'std_msgs.msg', 'rcl_interfaces',
    'rclpy.action'])
def test_ctrl_c_during_an_import_leaves_nothing_half_done(module):
    program = '''
import os, signal, sys, time

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(600)

def use():
    import rclpy, rclpy.action
    from rclpy.executors import SingleThreadedExecutor
    from std_msgs.msg import String
    rclpy.init(args=[])
    node = rclpy.create_node('again')
    node.create_publisher(String, 'chatter', 10).publish(String(data='again'))
    node.destroy_node()
    rclpy.shutdown()

sys.meta_path.insert(0, Interrupter())
try:
    use()
except KeyboardInterrupt:
    print('interrupted')
    if 'rclpy' in sys.modules:
        sys.modules['rclpy'].try_shutdown()
use()
'''
    child = start(program, module)
    try:
        output, errors = child.communicate(timeout=DEADLINE_S)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, output.strip(), errors) == (0, 'interrupted', '')


def test_ctrl_c_while_a_message_class_is_made_does_not_count_once_it_is_caught():
    # CPython ends a process with SIGINT, whatever its status, if a string was executed then.
    program = '''
from pteros import _message
from std_msgs.msg import String

_message._init_source = lambda fields: 'import signal\\nsignal.raise_signal(signal.SIGINT)'
try:
    String()
except KeyboardInterrupt:
    print('caught')
'''
    child = start(program)
    output, errors = child.communicate(timeout=DEADLINE_S)
    assert (child.returncode, output.strip(), errors) == (0, 'caught', '')


PEER = '''
import os, sys
import rclpy
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('peer')
publisher = node.create_publisher(String, 'killed', 10)
node.create_service(AddTwoInts, 'killed', lambda request, response: os.kill(os.getpid(), 9))
node.create_timer(0.001, lambda: publisher.publish(String(data=sys.argv[1] * 10_000)))
rclpy.spin(node)
'''

SURVIVOR = '''
import subprocess, sys
import rclpy
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String

rclpy.init(args=[])
node = rclpy.create_node('survivor')
heard = set()
subscription = node.create_subscription(String, 'killed', lambda m: heard.add(m.data[0]), 10)
client = node.create_client(AddTwoInts, 'killed')
publisher = node.create_publisher(String, 'to_peer', 10)
for word in 'abc':
    peer = subprocess.Popen([sys.executable, '-c', sys.argv[1], word])
    while word not in heard or not client.service_is_ready():
        publisher.publish(String(data=word))
        rclpy.spin_once(node, timeout_sec=0.1)
    # The service kills its process in the middle of the request.
    future = client.call_async(AddTwoInts.Request())
    assert peer.wait() == -9
    while subscription.get_publisher_count() or client.service_is_ready():
        rclpy.spin_once(node, timeout_sec=0.1)
    assert not future.done()
    client.remove_pending_request(future)
node.destroy_node()
rclpy.shutdown()
print('survived')
'''


def test_peers_that_are_killed_leave_and_the_next_ones_are_heard():
    child = start(SURVIVOR, PEER)
    try:
        output, errors = child.communicate(timeout=4 * DEADLINE_S)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, output.strip(), errors) == (0, 'survived', '')


EXITS = {
    'node and context left open': 'node.create_timer(0.001, lambda: None); rclpy.spin_once(node)',
    'daemon thread that spins': '''
node.create_timer(0.0, ready.set)
threading.Thread(target=spin, daemon=True).start()
ready.wait()''',
    'thread that spins until the shutdown': '''
node.create_timer(0.0, ready.set)
threading.Thread(target=spin).start()
ready.wait()
rclpy.shutdown()''',
    'executor of threads left open': '''
executor = MultiThreadedExecutor(4)
executor.add_node(node)
node.create_timer(0.001, ready.set)
while not ready.is_set():
    executor.spin_once()''',
    'sys.exit in a callback': '''
node.create_timer(0.001, lambda: sys.exit(0))
rclpy.spin(node)''',
    'cycle of node and callback': '''
node.itself = node
node.create_subscription(String, 'chatter', lambda message, node=node: node, 10)
rclpy.spin_once(node, timeout_sec=0.01)
del node''',
    'request that is pending': '''
client = node.create_client(AddTwoInts, 'nobody')
client.call_async(AddTwoInts.Request())
rclpy.spin_once(node, timeout_sec=0.01)''',
}


@pytest.mark.parametrize('name', EXITS)
def test_a_program_ends_whatever_it_left_open(name):
    program = f'''
import sys, threading, time
import rclpy
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String
ready = threading.Event()

def spin():
    try:
        rclpy.spin(node)
    except ExternalShutdownException:
        pass

rclpy.init(args=[])
node = rclpy.create_node('left')
{EXITS[name]}
'''
    child = start(program)
    try:
        output, errors = child.communicate(timeout=DEADLINE_S)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, output, errors) == (0, '', '')
