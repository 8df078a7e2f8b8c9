"""Launch guard: nothing that a launch has started outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid

import launch.logging
from launch import _watchdog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from launch.child_process import ChildProcess

OPEN_ENDED_MAX = 64
"""The largest number of ended processes whose output is still read, because others have it."""

_ORPHAN_ESCALATION = ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


class LaunchGuard:
    """
    Marks processes with the id of the launch, and ends those that are left at its end.

    A watchdog process does so if this process is killed. It starts with the first process.
    """

    def __init__(self) -> None:
        self.launch_id = uuid.uuid4().hex
        self.__watchdog: Optional[subprocess.Popen] = None
        self.__running: List[ChildProcess] = []
        self.__ended: List[ChildProcess] = []

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

    def add(self, process: ChildProcess) -> None:
        """Add a process that has started."""
        self.__running.append(process)

    def move_to_ended(self, process: ChildProcess) -> None:
        """Move a process that has ended; its output is read as long as others write it."""
        if process in self.__running:
            self.__running.remove(process)
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
        """End all processes that are left, and the watchdog. Blocks for at most 4 s."""
        if self.__watchdog is None:
            return
        left = _watchdog.end_orphans(self.launch_id, _ORPHAN_ESCALATION)
        if left:
            launch.logging.get_logger('launch').error(
                f'{left} processes of this launch could not be ended; find them with: ps -ef')
        for process in (*self.__running, *self.__ended):
            process.close()
        self.__running.clear()
        self.__ended.clear()
        watchdog, self.__watchdog = self.__watchdog, None
        try:
            watchdog.stdin.write(_watchdog.DONE)
            watchdog.stdin.close()
        except BrokenPipeError:
            # It has been killed.
            pass
        watchdog.wait()
