"""Launch guard: nothing that a launch has started outlives it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import uuid

import launch.logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from launch.child_process import ChildProcess

OPEN_ENDED_MAX = 64
"""The largest number of ended processes whose output is still read, because others have it."""

TEMPORARY_PREFIX = 'launch_params_'
"""How the names of temporary folders and of the parameter files in them begin."""

_WATCHDOG = os.path.join(os.path.dirname(__file__), '_watchdog.py')


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
                shutil.rmtree(path, ignore_errors=True)


class LaunchGuard:
    """
    Ends the processes that are left at the end of the launch, and deletes its temporary files.

    A watchdog process does so if this process is killed. It starts with the first process.
    """

    def __init__(self) -> None:
        from pteros import _native
        self.__library = _native.__file__
        self.__guard = _native.LaunchGuard(uuid.uuid4().hex)
        self.__running: List[ChildProcess] = []
        self.__ended: List[ChildProcess] = []
        self.__folder = TemporaryFolder()
        self.add_leader = self.__guard.add_leader
        self.remove_leader = self.__guard.remove_leader

    def mark(self, environment: Dict[str, str]) -> Dict[str, str]:
        """Return the environment with the launch's id."""
        name, _ = self.__guard.mark(None)
        return {**environment, name: self.__guard.mark(os.environ.get(name))[1]}

    def start_watchdog(self) -> None:
        """Start the watchdog unless it runs."""
        self.__guard.start_watchdog([
            sys.executable, '-I', '-S', _WATCHDOG, self.__library, self.__guard.launch_id])

    def write_temporary_file(self, text: str) -> str:
        """
        Write a file that the end of the launch deletes, and return its path.

        :raises OSError: if it cannot be written.
        """
        path = self.__folder.write(text)
        self.__guard.set_folder(self.__folder.path)
        return path

    def add(self, process: ChildProcess) -> None:
        """Add a process that has started."""
        self.__running.append(process)
        self.add_leader(process.get_pid())

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
            if self.__guard.has_watchdog:
                self.__end_processes()
        finally:
            self.__folder.delete()

    def __end_processes(self) -> None:
        left = self.__guard.end_processes()
        if left:
            launch.logging.get_logger('launch').error(
                f'{left} processes of this launch could not be ended; find them with: ps -ef')
        for process in (*self.__running, *self.__ended):
            process.close()
        self.__running.clear()
        self.__ended.clear()
        self.__guard.finish()


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
