"""
Watchdog process: ends all processes of a launch if the launcher is killed, and deletes its
temporary files.

It reads a pipe whose other end the launcher holds. The kernel closes that end when the
launcher ends, whatever the reason. A process belongs to a launch if its environment holds the
launch's id, which children inherit, or if it is in a process group that the launcher has named
a member of. The file runs on its own, with Python's library alone.
"""

import os
import signal
import sys
import time

LAUNCH_ID_VARIABLE = 'PTEROS_LAUNCH'
"""Environment variable with the ids of a process's launches, separated by colons."""

DONE = b'done\n'
"""Written by the launcher when the launch has ended properly."""

ADDED = b'added'
"""Written by the launcher before the id, start time and group of a member of a group."""

REMOVED = b'removed'
"""Written by the launcher before the id, start time and group of a member that has ended."""

FOLDER = b'folder'
"""Written by the launcher before the folder of temporary files, in hexadecimal digits."""

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


def read_stat(pid):
    """Return state, process group and start time of a process; ``None`` if there is none."""
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file:
            fields = file.read().rpartition(b')')[2].split()
        return fields[0], int(fields[2]), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


class Groups:
    """
    Process groups of a launch.

    The kernel gives a group's id to no other process while the group has a member. So a group
    is the launch's as long as one of its known members is there.
    """

    def __init__(self):
        self.__known = {}

    def __len__(self):
        return len(self.__known)

    def add(self, pid, start, group):
        """Add a member by its id and start time."""
        self.__known[pid, start] = group

    def remove(self, pid, start):
        """Remove a member that has ended."""
        self.__known.pop((pid, start), None)

    def ended(self):
        """Return the members that are not there any more: id, start time and group."""
        return [(*each, group) for each, group in self.__known.items() if not _is_in(*each, group)]

    def find(self):
        """Return the ids of all members that run, also of those that nobody has added."""
        groups = {group for each, group in self.__known.items() if _is_in(*each, group)}
        groups.discard(os.getpgrp())
        if not groups:
            self.__known = {}
            return []
        members = find_members(groups)
        self.__known = {(pid, start): group for pid, start, group, _ in members}
        return [pid for pid, _, _, state in members if state not in b'ZX']

    def has(self, pid):
        """Return whether a process is a known member."""
        stat = read_stat(pid)
        return stat is not None and self.__known.get((pid, stat[2])) == stat[1]


def _is_in(pid, start, group):
    stat = read_stat(pid)
    return stat is not None and stat[1:] == (group, start)


def find_members(groups):
    """Return id, start time, group and state of the processes in the groups."""
    members = []
    for name in os.listdir('/proc'):
        stat = read_stat(name) if name.isdecimal() else None
        if stat is not None and stat[1] in groups:
            members.append((int(name), stat[2], stat[1], stat[0]))
    return members


_NO_GROUPS = Groups()


def find_orphans(launch_id, groups=_NO_GROUPS):
    """Return the ids of the launch's processes, except this one."""
    return sorted({*_find_marked(launch_id), *groups.find()})


def _find_marked(launch_id):
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


def signal_orphans(launch_id, number, groups=_NO_GROUPS):
    """Send a signal to the launch's processes, and return how many they are."""
    found = find_orphans(launch_id, groups)
    for pid in found:
        # The id may be another process's by now. The descriptor pins the process.
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _belongs(pid, launch_id) or groups.has(pid):
                signal.pidfd_send_signal(descriptor, number)
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return len(found)


def end_orphans(launch_id, escalation=_ESCALATION, groups=_NO_GROUPS):
    """
    End the launch's processes, and return how many are left.

    :param escalation: Signals, each with the time that processes get to end, in seconds.
    """
    for number, timeout in escalation:
        if signal_orphans(launch_id, number, groups) == 0:
            return 0
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            time.sleep(_POLL_PERIOD)
            # A process that was forked meanwhile gets SIGKILL at once.
            left = (
                signal_orphans(launch_id, number, groups) if number == signal.SIGKILL
                else len(find_orphans(launch_id, groups)))
            if left == 0:
                return 0
    return len(find_orphans(launch_id, groups))


def delete_folder(path):
    """Delete a folder and the files in it; files that are gone already do no harm."""
    try:
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        pass


def main(launch_id):
    """Wait until the launcher ends; end its processes and delete its files unless it did."""
    groups = Groups()
    folder = None
    with open(0, 'rb', closefd=False) as file:
        for line in file:
            if line == DONE:
                return
            word, *numbers = line.split()
            if word == FOLDER:
                folder = bytes.fromhex(numbers[0].decode())
                continue
            pid, start, group = map(int, numbers)
            if word == ADDED:
                groups.add(pid, start, group)
            else:
                groups.remove(pid, start)
    end_orphans(launch_id, groups=groups)
    if folder is not None:
        delete_folder(folder)


if __name__ == '__main__':
    main(sys.argv[1])
