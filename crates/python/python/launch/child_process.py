"""Child process: a started process in an asyncio loop, without threads."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from launch.launch_guard import LaunchGuard

_READ_BYTES = 1 << 14
_PIPE_BYTES = 1 << 16
OWN_PROCESS_GROUP: Dict[str, Any] = (
    {'process_group': 0} if sys.version_info >= (3, 11) else {'preexec_fn': os.setpgrp})
"""Arguments of :class:`subprocess.Popen` that give a process a group of its own."""


class ChildProcess:
    """
    A process in a process group of its own.

    Its output arrives at a function, its end at the future ``complete``, which has the exit
    code or the negative number of a signal. The methods ``get_pid``, ``get_returncode``,
    ``send_signal``, ``terminate``, ``kill`` and ``close`` are those of asyncio's transports.
    """

    def __init__(
        self,
        command: List[str],
        *,
        name: str,
        folder: Optional[str],
        environment: Dict[str, str],
        has_terminals: bool,
        on_output: Callable[[int, bytes], None],
        may_read: Callable[[Callable[[], None]], bool],
        guard: LaunchGuard,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """
        Start it.

        :param has_terminals: Give it a pseudo-terminal each for stdout and stderr.
        :param on_output: Gets the number of the stream and bytes.
        :param may_read: Says whether more output can be taken now. Otherwise it waits in
            the pipe, and the process with it, until the function is called that it gets.
        :raises OSError: if it cannot be started.
        """
        self.name = name
        self.complete: asyncio.Future = loop.create_future()
        self.__guard = guard
        self.__loop = loop
        self.__on_output = on_output
        self.__may_read = may_read
        self.__streams: Dict[int, int] = {}
        guard.start_watchdog()
        near, far = _open_terminals() if has_terminals else _open_pipes()
        try:
            self.__process = subprocess.Popen(
                command, cwd=folder, env=guard.mark(environment),
                stdin=subprocess.PIPE, stdout=far[0], stderr=far[1],
                # Signals are for all that it starts, and Ctrl-C comes from the launch.
                **OWN_PROCESS_GROUP)
        except BaseException:
            for descriptor in near:
                os.close(descriptor)
            raise
        finally:
            for descriptor in far:
                os.close(descriptor)
        try:
            self.__descriptor: Optional[int] = os.pidfd_open(self.__process.pid)
        except OSError:
            # Without its end there is no process.
            os.killpg(self.__process.pid, signal.SIGKILL)
            self.__process.wait()
            self.__process.stdin.close()
            for descriptor in near:
                os.close(descriptor)
            raise
        guard.add(self)
        loop.add_reader(self.__descriptor, self.__handle_end)
        for stream, descriptor in zip((1, 2), near):
            os.set_blocking(descriptor, False)
            self.__streams[stream] = descriptor
            loop.add_reader(descriptor, self.__handle_output, stream)

    # --- output and end -----------------------------------------------------------------

    def __read(self, stream: int) -> Optional[bytes]:
        """Return what can be read; nothing at the end, ``None`` if it would block."""
        try:
            return os.read(self.__streams[stream], _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            # A pseudo-terminal without writers.
            return b''

    def __handle_output(self, stream: int) -> None:
        if not self.__may_read(lambda: self.__resume(stream)):
            self.__loop.remove_reader(self.__streams[stream])
            return
        data = self.__read(stream)
        if data:
            self.__on_output(stream, data)
        elif data is not None:
            self.__close_stream(stream)

    def __resume(self, stream: int) -> None:
        if stream in self.__streams and not self.__loop.is_closed():
            self.__loop.add_reader(self.__streams[stream], self.__handle_output, stream)

    def __close_stream(self, stream: int) -> None:
        descriptor = self.__streams.pop(stream)
        if not self.__loop.is_closed():
            self.__loop.remove_reader(descriptor)
        os.close(descriptor)

    def __handle_end(self) -> None:
        if self.__process.poll() is None:
            return
        self.__forget_descriptor()
        self.__close_input()
        for stream in list(self.__streams):
            # Only its own output. Others may write without an end; their output comes later.
            left = _capacity(self.__streams[stream])
            while left > 0:
                data = self.__read(stream)
                if data is None:
                    break
                if not data:
                    self.__close_stream(stream)
                    break
                left -= len(data)
                self.__on_output(stream, data)
        self.__guard.move_to_ended(self)
        if not self.complete.done():
            self.complete.set_result(self.__process.returncode)

    def __forget_descriptor(self) -> None:
        if self.__descriptor is not None:
            if not self.__loop.is_closed():
                self.__loop.remove_reader(self.__descriptor)
            os.close(self.__descriptor)
            self.__descriptor = None

    def __close_input(self) -> None:
        try:
            self.__process.stdin.close()
        except BrokenPipeError:
            # It has not read all.
            pass

    @property
    def is_closed(self) -> bool:
        """Whether nothing can write to its output any more."""
        return not self.__streams

    # --- as asyncio's transports --------------------------------------------------------

    def get_pid(self) -> int:
        """Return the process id."""
        return self.__process.pid

    def get_returncode(self) -> Optional[int]:
        """Return the exit code or the negative number of a signal; ``None`` while it runs."""
        return self.__process.returncode

    def get_pipe_transport(self, fd: int) -> Any:
        """Return a file to write to stdin (0), until the end; ``None`` for other streams."""
        return self.__process.stdin if fd == 0 else None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process group, if the process runs."""
        # It has not been waited for, so the id cannot be another process's.
        if self.__process.returncode is None:
            try:
                os.killpg(self.__process.pid, number)
            except ProcessLookupError:
                # It has left its group.
                self.__process.send_signal(number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close all streams, and kill the process if it still runs."""
        if self.__process.poll() is None:
            self.kill()
            self.__process.wait()
        self.__forget_descriptor()
        for stream in list(self.__streams):
            self.__close_stream(stream)
        self.__close_input()


def shell_command(command: List[str]) -> List[str]:
    """Return a command that runs another one in a shell, its parts as they are."""
    return ['/bin/sh', '-c', ' '.join(command)]


def _capacity(descriptor: int) -> int:
    """Return how many bytes a pipe or a pseudo-terminal holds at most."""
    try:
        return fcntl.fcntl(descriptor, 1032)  # F_GETPIPE_SZ, which Python 3.10 has by name
    except OSError:
        return _PIPE_BYTES


def _open_pipes() -> Any:
    out, err = os.pipe(), os.pipe()
    return (out[0], err[0]), (out[1], err[1])


def _open_terminals() -> Any:
    out = pty.openpty()
    try:
        err = pty.openpty()
    except OSError:
        for descriptor in out:
            os.close(descriptor)
        raise
    return (out[0], err[0]), (out[1], err[1])
