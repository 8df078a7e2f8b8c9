#!/usr/bin/env python3
"""
Installs a wheel as a stranger does, and runs programs of it: `check.py WHEEL`.

The root folder has Python, the system libraries that every manylinux system has, and nothing
else: no shell, no Rust, no ROS 2, no home, no PATH. It consists of bind mounts in namespaces of
its own, with a private network. Prints `skipped: …` and exits with 77 where the system has no
such namespaces or Python has no pip.

Within, this file runs again as `check.py --inside`: `python3 -m venv`, `pip install`, a talker and
a listener, an action, a launch file, and `pteros doctor`.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading

EXAMPLES = '../../../../examples/tutorials/python'
SKIPPED = 77
DEADLINE_S = 120.0
LIBRARIES = ('libgcc_s.so.1', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1')
VENV = '/venv'


# --- the root folder ------------------------------------------------------------------------

def libraries_of(files):
    """Return the libraries that files load, and those of `LIBRARIES` that lie beside them."""
    found = set()
    for file in files:
        output = subprocess.run(['ldd', file], capture_output=True, text=True).stdout
        found.update(re.findall(r'(?:=> |^\s*)(/\S+) \(0x', output, re.MULTILINE))
    folders = {os.path.dirname(os.path.realpath(path)) for path in found if 'libc.so' in path}
    found.update(
        os.path.join(folder, name) for folder in folders for name in LIBRARIES
        if os.path.exists(os.path.join(folder, name)))
    return sorted(found)


def mounts(python):
    """Return the files and folders of the host that the root has."""
    standard = sysconfig.get_path('stdlib')
    modules = [str(path) for path in pathlib.Path(standard, 'lib-dynload').glob('*.so')]
    wanted = {python, os.path.realpath(python), standard, *libraries_of([python, *modules])}
    # The kernel looks for it at this place.
    wanted.update(path for path in ('/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1')
                  if os.path.exists(path))
    return sorted(wanted)


def build(root, wheel):
    """Mount the root folder; the namespace of this process has it."""
    def place(path):
        return os.path.join(root, path.lstrip('/'))

    python = os.path.join(sys.base_prefix, 'bin', f'python{sysconfig.get_python_version()}')
    devices = [f'/dev/{name}' for name in ('null', 'urandom', 'zero')]
    for path in (*mounts(python), *devices):
        if os.path.isdir(path):
            os.makedirs(place(path), exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place(path)), exist_ok=True)
            pathlib.Path(place(path)).touch()
        subprocess.run(['mount', '--bind', path, place(path)], check=True)
        if path not in devices:
            subprocess.run(['mount', '-o', 'remount,bind,ro', place(path)], check=True)
    for path in ('/proc', '/dev/shm', '/tmp', '/check'):
        os.makedirs(place(path), exist_ok=True)
    subprocess.run(['mount', '--rbind', '/proc', place('/proc')], check=True)
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', place('/dev/shm')], check=True)
    examples = pathlib.Path(__file__).resolve().parent / EXAMPLES
    for file in (wheel, __file__, examples / 'talker.py', examples / 'listener.py'):
        shutil.copy(file, place('/check'))
    return python


def in_namespaces(root, wheel):
    """Build the root folder and go on within it. The mounts end with their namespace."""
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', root], check=True)
    python = build(root, wheel)
    os.chroot(root)
    os.chdir('/')
    os.execve(python, [python, '-I', '/check/check.py', '--inside'], {})


def outside(wheel):
    """Enter namespaces of our own."""
    if importlib.util.find_spec('ensurepip') is None or shutil.which('ldd') is None:
        print('skipped: this Python cannot make environments with pip (module ensurepip), or the '
              'system has no ldd')
        return SKIPPED
    flags = ['--user', '--map-root-user', '--mount', '--net', '--pid', '--fork', '--mount-proc']
    try:
        subprocess.run(['unshare', *flags, 'true'], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f'skipped: no namespaces: {getattr(error, "stderr", None) or error}')
        return SKIPPED
    # Nothing is ever deleted below it: it stays empty outside of the namespace.
    root = tempfile.mkdtemp(prefix='pteros_clean_root_')
    try:
        words = [sys.executable, '-I', __file__, '--in-namespaces', root, os.path.abspath(wheel)]
        return subprocess.run(['unshare', *flags, *words]).returncode
    finally:
        os.rmdir(root)


# --- within ---------------------------------------------------------------------------------

def start_loopback():
    """Start the loopback interface of the private network."""
    import fcntl
    import socket
    import struct
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        request = struct.pack('16sh14x', b'lo', 0x1 | 0x40 | 0x1000)
        fcntl.ioctl(one, 0x8914, request)  # SIOCSIFFLAGS: up, running, multicast


class Program:
    """A program whose output is kept and awaited."""

    def __init__(self, *words):
        self.words = words
        self.output = ''
        self._is_read = False
        self._printed = threading.Condition()
        self._process = subprocess.Popen(
            words, cwd='/check', env={}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._printed:
                self.output += line
                self._printed.notify_all()
        with self._printed:
            self._is_read = True
            self._printed.notify_all()

    def wait_for(self, text):
        """Wait until the program has printed a text."""
        with self._printed:
            self._printed.wait_for(lambda: text in self.output or self._is_read, DEADLINE_S)
        if text not in self.output:
            self._process.kill()
            self._reader.join()
            raise AssertionError(f'{self.words}: no {text!r} in:\n{self.output}')

    def end(self, number=None):
        """Wait for the end, after a signal if one is given, and return the output."""
        if number is not None:
            self._process.send_signal(number)
        code = self._process.wait(DEADLINE_S)
        self._reader.join()
        assert code == 0, f'{self.words} ended with {code}:\n{self.output}'
        return self.output


SERVER = '''
import rclpy
from example_interfaces.action import Fibonacci
from rclpy.action import ActionServer
from rclpy.executors import ExternalShutdownException

def execute(goal):
    sequence = [0, 1]
    for _ in range(goal.request.order - 1):
        sequence.append(sequence[-1] + sequence[-2])
        goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
    goal.succeed()
    return Fibonacci.Result(sequence=sequence)

rclpy.init()
node = rclpy.create_node('server')
server = ActionServer(node, Fibonacci, 'fibonacci', execute)
print('serves', flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
'''

CLIENT = '''
import rclpy
from example_interfaces.action import Fibonacci
from rclpy.action import ActionClient

rclpy.init()
node = rclpy.create_node('client')
client = ActionClient(node, Fibonacci, 'fibonacci')
assert client.wait_for_server(timeout_sec=60)
feedback = []
sent = client.send_goal_async(
    Fibonacci.Goal(order=7), feedback_callback=lambda one: feedback.append(one.feedback))
rclpy.spin_until_future_complete(node, sent, timeout_sec=60)
result = sent.result().get_result_async()
rclpy.spin_until_future_complete(node, result, timeout_sec=60)
print('result', *result.result().result.sequence, 'feedback', len(feedback), flush=True)
'''

LAUNCH = '''
import sys
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessIO
from launch.substitutions import LaunchConfiguration

def generate_launch_description():
    def heard(event):
        return Shutdown() if b'I heard' in event.text else None

    return LaunchDescription([
        DeclareLaunchArgument('topic', default_value='launched'),
        *(ExecuteProcess(
            cmd=[sys.executable, name, '--ros-args', '-r',
                 ['chatter:=', LaunchConfiguration('topic')]],
            name=name, output='screen') for name in ('talker.py', 'listener.py')),
        RegisterEventHandler(OnProcessIO(on_stdout=heard, on_stderr=heard))])
'''


def run_programs(has_command):
    """Run the programs of the environment."""
    python = f'{VENV}/bin/python'
    for name, text in (('server.py', SERVER), ('client.py', CLIENT), ('a.launch.py', LAUNCH)):
        pathlib.Path('/check', name).write_text(text)
    talker = Program(python, 'talker.py')
    listener = Program(python, 'listener.py')
    listener.wait_for('I heard: "Hello World: ')
    for program in (talker, listener):
        program.end(signal.SIGINT)
    print('talker and listener: heard', flush=True)
    server = Program(python, 'server.py')
    server.wait_for('serves')
    output = Program(python, 'client.py').end()
    assert 'result 0 1 1 2 3 5 8 13 feedback 6' in output, output
    server.end(signal.SIGTERM)
    print('action: result and feedback', flush=True)
    launcher = [f'{VENV}/bin/pteros', 'launch'] if has_command else [python, '-m', 'pteros.launch']
    plan = Program(*launcher, 'a.launch.py', '--dry-run', 'topic:=news').end()
    assert 'chatter:=news' in plan, plan
    output = Program(*launcher, 'a.launch.py').end()
    assert 'I heard: "Hello World: ' in output, output
    print('launch file: shown and run', flush=True)
    if has_command:
        for command in ([f'{VENV}/bin/pteros'], [python, '-m', 'pteros']):
            output = Program(*command, 'doctor').end()
            assert f"imports rclpy of Pteros's wheel in {VENV}/lib/python3" in output, output
        print('doctor: the wheel is found', flush=True)
        print(output)


def inside():
    """Install the wheel and run the programs."""
    start_loopback()
    entries = {name for name in os.listdir('/') if os.path.isdir(os.path.join('/', name))}
    print('root:', *sorted(entries), flush=True)
    for program in ('sh', 'cargo', 'ros2', 'pteros'):
        assert shutil.which(program, path='/bin:/usr/bin:/usr/local/bin') is None, program
    wheel, = pathlib.Path('/check').glob('*.whl')
    subprocess.run([sys.executable, '-I', '-m', 'venv', VENV], check=True, env={})
    words = ['install', '--quiet', '--no-index', '--disable-pip-version-check', str(wheel)]
    subprocess.run([f'{VENV}/bin/pip', *words], check=True, env={})
    command = os.path.exists(f'{VENV}/bin/pteros')
    run_programs(command)
    subprocess.run(
        [f'{VENV}/bin/pip', 'uninstall', '--quiet', '--yes', 'pteros'], check=True, env={})
    left = [path for path in pathlib.Path(VENV).rglob('*')
            if re.search('rclpy|pteros|std_msgs', path.name)]
    assert not left, left
    print('uninstalled: nothing is left', flush=True)


def main(words):
    """Run the part that the command line names; return the exit code."""
    if words == ['--inside']:
        inside()
        return 0
    if len(words) == 3 and words[0] == '--in-namespaces':
        return in_namespaces(*words[1:])
    if len(words) == 1 and words[0].endswith('.whl'):
        return outside(words[0])
    print('usage: check.py WHEEL', file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
