"""Launch files, packages and launches for the tests of launch."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pteros
import pytest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = pathlib.Path(pteros.__file__).parent.parent
DEADLINE_S = 60.0

PROGRAM = '''\
import os, signal, sys
name, state = sys.argv[1], sys.argv[2]
if 'ignores' in sys.argv:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
if 'daemon' in sys.argv and os.fork() == 0:
    os.setsid()
    name += '_daemon'
with open(os.path.join(state, name + '.tmp'), 'w') as file:
    file.write(str(os.getpid()))
os.rename(os.path.join(state, name + '.tmp'), os.path.join(state, name))
print(name, 'runs', flush=True)
while True:
    signal.pause()
'''


class Folder:
    """A folder with a package prefix and launch files."""

    def __init__(self, path):
        self.path = path
        self.prefix = path / 'prefix'
        self.index = self.prefix / 'share/ament_index/resource_index/packages'
        self.index.mkdir(parents=True)
        self.state = path / 'state'
        self.state.mkdir()
        self.program = self.write('program.py', PROGRAM)

    def write(self, name, text):
        """Write a file and return its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def package(self, name, *programs):
        """Add a package with programs that do nothing for ever."""
        (self.index / name).touch()
        (self.prefix / 'share' / name).mkdir(exist_ok=True)
        for program in programs:
            path = self.write(
                f'prefix/lib/{name}/{program}', '#!/bin/sh\necho "$@"\nexec sleep 1000\n')
            os.chmod(path, 0o755)

    def environment(self):
        """Return the environment of a launch."""
        return {
            **os.environ, 'AMENT_PREFIX_PATH': str(self.prefix), 'ROS_LOG_DIR': str(self.path),
            'PYTHONPATH': str(PYTHON)}

    def command(self, *words):
        """Return the command line of pteros.launch."""
        return [sys.executable, '-m', 'pteros.launch', *words]

    def start(self, *words):
        """Start pteros.launch."""
        return subprocess.Popen(
            self.command(*words), cwd=self.path, env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, *words):
        """Run pteros.launch to its end."""
        return subprocess.run(
            self.command(*words), cwd=self.path, env=self.environment(), text=True,
            capture_output=True, timeout=DEADLINE_S)

    def process(self, name, *words):
        """Return the text of an ExecuteProcess of the test program."""
        command = [sys.executable, self.program, name, str(self.state), *words]
        return f'ExecuteProcess(cmd={command!r}, name={name!r}, output="screen")'

    def pid(self, name):
        """Wait until a test program runs, and return its process id."""
        path = self.state / name
        wait_until(path.exists, f'{name} runs')
        return int(path.read_text())


def wait_until(condition, text):
    """Wait until a condition holds; fail after the deadline."""
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, f'not in time: {text}'
        time.sleep(0.01)


def is_running(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def end(launch):
    """End a launch whatever it does."""
    if launch.poll() is None:
        launch.send_signal(signal.SIGKILL)
    launch.communicate()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give a folder; logs of launches in this process go there too."""
    made = Folder(tmp_path)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(made.prefix))
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path))
    return made
