"""Launch guard: nothing that a launch has started outlives it."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import uuid

import launch.logging
from launch import _watchdog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from launch.child_process import ChildProcess

OPEN_ENDED_MAX = 64
"""The largest number of ended processes whose output is still read, because others have it."""

MEMBERS_LEFT_MAX = 16
"""The largest number of members that are known of the group of a process that has ended."""

MEMBERS_ENDED_MAX = 256
"""The number of members known beside the processes that run, with which ended ones go."""

TEMPORARY_PREFIX = 'launch_params_'
"""How the names of temporary folders and of the parameter files in them begin."""

_WATCHDOG_TIMEOUT = 2.0
_ORPHAN_ESCALATION = ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


class TemporaryFolder:
    """
    The temporary files of a launch, in a folder of their own.

    The end of the process deletes it if nobody has done so before. The folder can be used again
    after it was deleted.
    """

    def __init__(self) -> None:
        self.path: Optional[str] = None
        self.__owner = 0

    def write(self, text: str) -> str:
        """
        Write a file, and return its path.

        :raises OSError: if it cannot be written.
        """
        if self.path is None:
            self.path = tempfile.mkdtemp(prefix=TEMPORARY_PREFIX)
            self.__owner = os.getpid()
            atexit.register(self.delete)
        with tempfile.NamedTemporaryFile(
                mode='w', prefix=TEMPORARY_PREFIX, dir=self.path, delete=False) as file:
            file.write(text)
            return file.name

    def delete(self) -> None:
        """Delete the files and the folder, if there are any. A forked child keeps them."""
        if self.path is not None:
            path, self.path = self.path, None
            atexit.unregister(self.delete)
            if self.__owner == os.getpid():
                _watchdog.delete_folder(os.fsencode(path))


class LaunchGuard:
    """
    Marks processes with the id of the launch, and ends those that are left at its end. It also
    knows their process groups, as a process may start others without the mark. It deletes the
    temporary files of the launch.

    A watchdog process does so if this process is killed. It starts with the first process.
    """

    def __init__(self) -> None:
        self.launch_id = uuid.uuid4().hex
        self.__watchdog: Optional[subprocess.Popen] = None
        self.__running: List[ChildProcess] = []
        self.__ended: List[ChildProcess] = []
        self.__groups = _watchdog.Groups()
        self.__starts: Dict[int, int] = {}
        self.__folder = TemporaryFolder()

    def mark(self, environment: Dict[str, str]) -> Dict[str, str]:
        """Return the environment with the launch's id."""
        outer = os.environ.get(_watchdog.LAUNCH_ID_VARIABLE)
        ids = self.launch_id if not outer else f'{outer}:{self.launch_id}'
        return {**environment, _watchdog.LAUNCH_ID_VARIABLE: ids}

    def start_watchdog(self) -> None:
        """Start the watchdog unless it runs."""
        if self.__watchdog is None:
            self.__watchdog = subprocess.Popen(
                [sys.executable, '-I', '-S', _watchdog.__file__, self.launch_id],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                # Ctrl-C in the terminal must not reach it.
                start_new_session=True)
            os.set_blocking(self.__watchdog.stdin.fileno(), False)
            self.__tell_folder()

    def write_temporary_file(self, text: str) -> str:
        """
        Write a file that the end of the launch deletes, and return its path.

        :raises OSError: if it cannot be written.
        """
        is_first = self.__folder.path is None
        path = self.__folder.write(text)
        if is_first and self.__watchdog is not None:
            self.__tell_folder()
        return path

    def __tell_folder(self) -> None:
        if self.__folder.path is not None:
            path = os.fsencode(self.__folder.path)
            self.__tell(b'%s %s\n' % (_watchdog.FOLDER, path.hex().encode()))

    def __tell(self, message: bytes) -> None:
        """Write a line to the watchdog, unless it has been killed or stopped."""
        try:
            # The kernel writes so few bytes as a whole, or nothing.
            os.write(self.__watchdog.stdin.fileno(), message)
        except (BrokenPipeError, BlockingIOError):
            pass

    def __add_member(self, pid: int, start: int, group: int) -> None:
        self.__groups.add(pid, start, group)
        self.__tell(b'%s %d %d %d\n' % (_watchdog.ADDED, pid, start, group))

    def __remove_member(self, pid: int, start: int, group: int) -> None:
        self.__groups.remove(pid, start)
        self.__tell(b'%s %d %d %d\n' % (_watchdog.REMOVED, pid, start, group))

    def __add_members_left(self, group: int) -> None:
        """Add processes that are in the group of a process that has ended."""
        try:
            os.killpg(group, 0)
        except OSError:
            # Mostly there are none.
            return
        members = _watchdog.find_members({group})
        if any(pid == group for pid, *_ in members):
            # Another process has the id, and has made a group.
            return
        for pid, start, _, _ in members[:MEMBERS_LEFT_MAX]:
            self.__add_member(pid, start, group)
        if len(self.__groups) > len(self.__starts) + MEMBERS_ENDED_MAX:
            for member in self.__groups.ended():
                self.__remove_member(*member)

    def add(self, process: ChildProcess) -> None:
        """Add a process that has started."""
        self.__running.append(process)
        self.add_leader(process.get_pid())

    def add_leader(self, pid: int) -> None:
        """Add a process that leads a group; those that it starts may lose the mark."""
        stat = _watchdog.read_stat(pid)
        if stat is not None:
            self.__starts[pid] = stat[2]
            self.__add_member(pid, stat[2], pid)

    def remove_leader(self, pid: int) -> None:
        """Remove a leader that has ended; the rest of its group stays."""
        self.__add_members_left(pid)
        start = self.__starts.pop(pid, None)
        if start is not None:
            self.__remove_member(pid, start, pid)

    def move_to_ended(self, process: ChildProcess) -> None:
        """Move a process that has ended; its output is read as long as others write it."""
        if process in self.__running:
            self.__running.remove(process)
            self.remove_leader(process.get_pid())
        if process.is_closed:
            return
        self.__ended.append(process)
        if len(self.__ended) > OPEN_ENDED_MAX:
            oldest = self.__ended.pop(0)
            oldest.close()
            launch.logging.get_logger('launch').warning(
                f'[{oldest.name}] has ended, but others write its output; it is read no more, '
                f'because {OPEN_ENDED_MAX} other processes are in the same state')

    def signal_all(self, number: int) -> None:
        """Send a signal to all processes, the last started first."""
        for process in reversed(self.__running):
            process.send_signal(number)

    def close(self) -> None:
        """
        End all processes that are left, and the watchdog, and delete temporary files.

        Blocks for at most 6 s.
        """
        try:
            self.__end_processes()
        finally:
            self.__folder.delete()

    def __end_processes(self) -> None:
        if self.__watchdog is None:
            return
        left = _watchdog.end_orphans(self.launch_id, _ORPHAN_ESCALATION, self.__groups)
        if left:
            launch.logging.get_logger('launch').error(
                f'{left} processes of this launch could not be ended; find them with: ps -ef')
        for process in (*self.__running, *self.__ended):
            process.close()
        self.__running.clear()
        self.__ended.clear()
        self.__starts.clear()
        self.__tell(_watchdog.DONE)
        watchdog, self.__watchdog = self.__watchdog, None
        watchdog.stdin.close()
        try:
            watchdog.wait(_WATCHDOG_TIMEOUT)
        except subprocess.TimeoutExpired:
            # It has been stopped.
            watchdog.kill()
            watchdog.wait()


def write_temporary_file(context: Any, text: str) -> str:
    """
    Write a file that the end of a context's launch deletes, and return its path.

    Without a launch, as in a dry run, the end of the process deletes it.

    :raises OSError: if it cannot be written.
    """
    # Tests of launch files bring contexts of their own.
    guard = getattr(context, '_guard', None)
    if guard is None:
        guard = context._guard = LaunchGuard()
    return guard.write_temporary_file(text)
