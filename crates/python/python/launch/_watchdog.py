"""
Watchdog process: ends all processes of a launch if the launcher is killed.

It reads a pipe whose other end the launcher holds. The kernel closes that end when the
launcher ends, whatever the reason. A process belongs to a launch if its environment holds the
launch's id, which children inherit. The file runs on its own, with Python's library alone.
"""

import os
import signal
import sys
import time

LAUNCH_ID_VARIABLE = 'PTEROS_LAUNCH'
"""Environment variable with the ids of a process's launches, separated by colons."""

DONE = b'done'
"""Written by the launcher when the launch has ended properly."""

_ENVIRONMENT_BYTES_MAX = 4 << 20
_POLL_PERIOD = 0.02
_ESCALATION = ((signal.SIGINT, 1.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


def _belongs(pid, launch_id):
    """Return whether a process is of the launch; ``None`` while it has no environment."""
    try:
        with open(f'/proc/{pid}/environ', 'rb') as file:
            environment = file.read(_ENVIRONMENT_BYTES_MAX)
    except OSError:
        return False
    if not environment:
        # A process within exec has no environment for a moment. Zombies and threads of the
        # kernel have no executable either.
        try:
            os.readlink(f'/proc/{pid}/exe')
            return None
        except OSError:
            return False
    start = LAUNCH_ID_VARIABLE.encode() + b'='
    for variable in environment.split(b'\0'):
        if variable.startswith(start):
            return launch_id.encode() in variable[len(start):].split(b':')
    return False


def find_orphans(launch_id):
    """Return the ids of the launch's processes, except this one."""
    own = os.getpid()
    found = []
    for _ in range(20):
        members = {
            int(name): _belongs(name, launch_id)
            for name in os.listdir('/proc') if name.isdecimal() and int(name) != own}
        found = [pid for pid, belongs in members.items() if belongs]
        if found or None not in members.values():
            return found
        time.sleep(0.005)
    return found


def signal_orphans(launch_id, number):
    """Send a signal to the launch's processes, and return how many they are."""
    found = find_orphans(launch_id)
    for pid in found:
        # The id may be another process's by now. The descriptor pins the process.
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _belongs(pid, launch_id):
                signal.pidfd_send_signal(descriptor, number)
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return len(found)


def end_orphans(launch_id, escalation=_ESCALATION):
    """
    End the launch's processes, and return how many are left.

    :param escalation: Signals, each with the time that processes get to end, in seconds.
    """
    for number, timeout in escalation:
        if signal_orphans(launch_id, number) == 0:
            return 0
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            time.sleep(_POLL_PERIOD)
            # A process that was forked meanwhile gets SIGKILL at once.
            left = (
                signal_orphans(launch_id, number) if number == signal.SIGKILL
                else len(find_orphans(launch_id)))
            if left == 0:
                return 0
    return len(find_orphans(launch_id))


def main(launch_id):
    """Wait until the launcher ends; end its processes unless it did."""
    received = b''
    while True:
        part = os.read(0, 64)
        if not part:
            break
        received += part
    if received != DONE:
        end_orphans(launch_id)


if __name__ == '__main__':
    main(sys.argv[1])
