"""rclpy on the native module: the programs of the tutorial, and nodes in one process."""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.task import Future

from example_interfaces.action import Fibonacci
from example_interfaces.srv import AddTwoInts
from std_msgs.msg import String

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / 'examples' / 'tutorials' / 'python'


@pytest.fixture
def node():
    rclpy.init(args=[])
    node = rclpy.create_node('tester')
    yield node
    node.destroy_node()
    rclpy.try_shutdown()


def spin_until(node, condition, seconds=20):
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    deadline = time.monotonic() + seconds
    try:
        while not condition():
            assert time.monotonic() < deadline, 'nothing came in time'
            executor.spin_once(timeout_sec=0.1)
    finally:
        executor.shutdown()


def test_the_talker_of_the_tutorial_is_heard():
    talker = subprocess.Popen(
        [sys.executable, EXAMPLES / 'talker.py'], stderr=subprocess.PIPE, text=True)
    listener = subprocess.Popen(
        [sys.executable, EXAMPLES / 'listener.py'], stderr=subprocess.PIPE, text=True)
    try:
        assert 'I heard: "Hello World: ' in listener.stderr.readline()
        assert 'Publishing: "Hello World: 1"' in talker.stderr.readline()
        for child in (talker, listener):
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=30)
            assert child.returncode == 0, errors
    finally:
        talker.kill()
        listener.kill()


def test_a_new_package_passes_its_own_test(tmp_path):
    # The texts of `pteros new --python`, filled in as the command does.
    template = EXAMPLES.parents[2] / 'crates' / 'cli' / 'src' / 'new' / 'template' / 'python'
    words = {'NAME': 'my_py', 'LIBRARY': 'my_library', 'NODE': 'my_node', 'TYPE': 'MyNode'}

    def write(source, name):
        text = (template / source).read_text()
        for word, value in words.items():
            text = text.replace(f'@{word}@', value)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    write('node.py.txt', 'my_library/my_node.py')
    write('test_node.py.txt', 'test/test_my_node.py')
    (tmp_path / 'my_library' / '__init__.py').touch()
    unittest = [sys.executable, '-m', 'unittest', 'discover', '-s', 'test']
    result = subprocess.run(unittest, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0 and 'Ran 1 test' in result.stderr, result.stderr


def test_callbacks_get_messages_of_timers(node):
    heard = []
    publisher = node.create_publisher(String, 'chatter', 10)
    node.create_subscription(String, 'chatter', lambda message, info: heard.append((message, info)), 10)
    node.create_timer(0.01, lambda: publisher.publish(String(data='tick')))
    spin_until(node, lambda: len(heard) >= 3)
    assert heard[0][0].data == 'tick' and heard[0][1]['source_timestamp'] > 0


def test_a_service_adds(node):
    def add(request, response):
        response.sum = request.a + request.b
        return response

    node.create_service(AddTwoInts, 'add', add)
    client = node.create_client(AddTwoInts, 'add')
    spin_until(node, client.service_is_ready)
    future = client.call_async(AddTwoInts.Request(a=2, b=3))
    spin_until(node, future.done)
    assert future.result().sum == 5


def test_an_action_gives_feedback_and_a_result(node):
    def execute(goal):
        sequence = [0, 1]
        for _ in range(goal.request.order - 1):
            sequence.append(sequence[-1] + sequence[-2])
            goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        goal.succeed()
        return Fibonacci.Result(sequence=sequence)

    server = ActionServer(node, Fibonacci, 'fibonacci', execute)
    client = ActionClient(node, Fibonacci, 'fibonacci')
    feedback = []
    spin_until(node, client.server_is_ready)
    sent = client.send_goal_async(
        Fibonacci.Goal(order=5), feedback_callback=lambda one: feedback.append(one.feedback))
    spin_until(node, sent.done)
    assert sent.result().accepted
    result = sent.result().get_result_async()
    spin_until(node, result.done)
    assert list(result.result().result.sequence) == [0, 1, 1, 2, 3, 5]
    spin_until(node, lambda: len(feedback) == 4)
    server.destroy()
    client.destroy()


def test_parameters_come_from_arguments():
    rclpy.init(args=['--ros-args', '-p', 'rate:=2.5'])
    node = rclpy.create_node('tester')
    assert node.declare_parameter('rate', 1.0).value == 2.5
    node.set_parameters([Parameter('rate', value=3.5)])
    assert node.get_parameter('rate').value == 3.5
    node.destroy_node()
    rclpy.shutdown()


def test_coroutines_and_futures_run_in_the_executor(node):
    client = node.create_client(AddTwoInts, 'add')
    node.create_service(AddTwoInts, 'add', lambda request, response: AddTwoInts.Response(
        sum=request.a + request.b))
    results = []

    async def call():
        results.append((await client.call_async(AddTwoInts.Request(a=1, b=1))).sum)

    spin_until(node, client.service_is_ready)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    task = executor.create_task(call)
    executor.spin_until_future_complete(task, timeout_sec=20)
    assert results == [2]
    executor.shutdown()


def test_asyncio_awaits_futures_and_a_wait_that_is_cancelled_leaves_its_future(node):
    client = node.create_client(AddTwoInts, 'add')
    node.create_service(AddTwoInts, 'add', lambda request, response: AddTwoInts.Response(
        sum=request.a + request.b))

    async def spin():
        while True:
            rclpy.spin_once(node, timeout_sec=0.01)
            await asyncio.sleep(0)

    async def wait(future):
        return await future

    async def main():
        spinning = asyncio.create_task(spin())
        while not client.service_is_ready():
            await asyncio.sleep(0.01)
        answers = await asyncio.gather(*(
            wait(client.call_async(AddTwoInts.Request(a=2, b=number))) for number in range(3)))
        assert [answer.sum for answer in answers] == [2, 3, 4]
        slow = Future()
        waits = [asyncio.create_task(wait(slow)) for _ in range(2)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(slow), 0.01)
        assert not slow.done() and not slow.cancelled()
        # A wait that ended leaves nothing in a future that lives on.
        assert len(slow._wakers) == 2
        threading.Thread(target=slow.set_result, args=('done',)).start()
        assert await asyncio.gather(*waits) == ['done', 'done']
        failed = Future()
        waits = asyncio.create_task(wait(failed))
        await asyncio.sleep(0)
        failed.set_exception(ValueError('wrong'))
        with pytest.raises(ValueError, match='wrong'):
            await waits
        spinning.cancel()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_the_log_goes_to_rosout(node):
    from rcl_interfaces.msg import Log
    seen = []
    node.create_subscription(Log, '/rosout', seen.append, 10)
    node.get_logger().warning('look')
    spin_until(node, lambda: any(line.msg == 'look' for line in seen))
    line = next(line for line in seen if line.msg == 'look')
    assert line.name == 'tester' and line.level == 30
    assert os.path.basename(line.file) == 'test_programs.py'


def test_a_log_message_keeps_its_lines_but_does_not_steer_the_terminal():
    program = (
        'import rclpy, rclpy.logging\n'
        'rclpy.logging.get_logger("table").info("a: 1\\n\\tb: \\\\n \\x1b[2K")\n')
    result = subprocess.run(
        [sys.executable, '-c', program], text=True, capture_output=True, timeout=60)
    assert result.stderr.endswith('[table]: a: 1\n\tb: \\n \\x1b[2K\n'), result.stderr


def test_the_module_of_the_command_says_where_the_command_is_missing():
    # The packages of the tests are a wheel without the command.
    result = subprocess.run(
        [sys.executable, '-m', 'pteros', 'doctor'], text=True, capture_output=True, timeout=60)
    assert result.returncode == 1
    assert 'the command `pteros` was not installed with this package' in result.stderr


FORKED = '''
import os, sys
import rclpy
from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node('parent')
spinner = SingleThreadedExecutor()
spinner.add_node(node)
publisher = node.create_publisher(String, 'forked', 10)
other = Context()
rclpy.init(context=other)
listener = rclpy.create_node('listener', context=other)
executor = SingleThreadedExecutor(context=other)
executor.add_node(listener)
heard, ended = [], []
events = SubscriptionEventCallbacks(matched=lambda change: ended.append(
    change.current_count_change) if change.current_count_change < 0 else None)
subscription = listener.create_subscription(
    String, 'forked', lambda message: heard.append(message.data), 10, event_callbacks=events)
while publisher.get_subscription_count() == 0 or subscription.get_publisher_count() == 0:
    executor.spin_once(timeout_sec=0.1)

child = os.fork()
if child == 0:
    assert not rclpy.ok()
    for use in (lambda: publisher.publish(String(data='child')), rclpy.shutdown,
                lambda: rclpy.create_node('late')):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        else:
            sys.exit('the parent was used in the child')
    spinner.spin()
    print('spin ended', flush=True)
    node.destroy_node()
    rclpy.init()
    rclpy.create_node('own').destroy_node()
    rclpy.shutdown()
    # Ends as programs do, with atexit.
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
publisher.publish(String(data='after'))
while not heard:
    executor.spin_once(timeout_sec=0.1)
assert heard == ['after'] and not ended, (heard, ended)
rclpy.shutdown()
other.shutdown()
'''


def test_a_forked_child_neither_uses_nor_ends_what_is_its_parents():
    done = subprocess.run(
        [sys.executable, '-c', FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'InvalidHandle cannot use it: it belongs to the process that called os.fork()' in done.stdout
    assert 'spin ended' in done.stdout


SUB_INTERPRETER = '''
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

if FIRST:
    import rclpy
one = interpreters.create()
interpreters.run_string(one, """
try:
    import rclpy
except ImportError as error:
    print(error, flush=True)
""")
interpreters.destroy(one)
import rclpy
rclpy.init(args=[])
rclpy.create_node('main').destroy_node()
rclpy.shutdown()
'''


@pytest.mark.parametrize('is_first', [True, False])
def test_an_import_in_a_sub_interpreter_is_a_clear_error(is_first):
    done = subprocess.run(
        [sys.executable, '-c', SUB_INTERPRETER.replace('FIRST', str(is_first))],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('pteros does not work in a sub-interpreter; ')


def test_a_node_imports_no_module_that_takes_long():
    # The modules of `site` are the environment's.
    program = (
        'import rclpy, sys\n'
        'rclpy.init(args=[])\n'
        'rclpy.create_node("quick")\n'
        'print(*sys.modules)\n')
    result = subprocess.run(
        [sys.executable, '-S', '-c', program], text=True, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    slow = {'importlib.abc', 'importlib.resources', 'concurrent.futures', 'typing', 'inspect',
            'numpy', 'asyncio', 'pathlib'}
    assert not slow & set(result.stdout.split())


def test_the_constructor_of_a_message_is_the_same_after_its_first_use():
    from geometry_msgs.msg import Inertia

    class Named(Inertia):
        pass

    assert Named(m=1.0).m == 1.0
    assert Inertia(m=2.0) == Inertia(m=2.0)
    for wrong in ({'mass': 1.0}, {'m': 'heavy'}):
        with pytest.raises(AssertionError):
            Inertia(check_fields=True, **wrong)
    with pytest.raises(TypeError):
        Inertia(1.0)
