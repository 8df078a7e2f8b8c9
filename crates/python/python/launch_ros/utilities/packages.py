"""
Packages and their programs: those of the ament index, and those that the command knows.

``pteros`` also finds packages of the Cargo workspaces around the current folder, and programs
that pip installed. It tells where it is by PTEROS_COMMAND; else it is looked for on PATH, and
in this Python's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from ament_index_python.packages import (
    PackageNotFoundError, get_package_prefix, get_package_share_directory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

COMMAND_VARIABLE = 'PTEROS_COMMAND'
"""Environment variable with the path of the command."""


def _ask_command(*arguments: str) -> Tuple[Any, Optional[str]]:
    """Return what ``pteros pkg … --json`` prints, and the text of its error."""
    own = os.path.join(sys.prefix, 'bin')
    command = (
        os.environ.get(COMMAND_VARIABLE) or shutil.which('pteros')
        or shutil.which('pteros', path=own))
    if not command:
        return None, None
    try:
        result = subprocess.run(
            [command, 'pkg', *arguments, '--json'], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=10)
        if result.returncode == 0:
            return json.loads(result.stdout), None
        lines = (result.stdout + result.stderr).splitlines()
        return None, json.loads(lines[-1])['error'] if lines else None
    except (KeyError, OSError, TypeError, ValueError, subprocess.TimeoutExpired):
        return None, None


def _find_in_index(package: str) -> Optional[str]:
    """Return the prefix of a package of the index; ``None`` for any other package."""
    try:
        return get_package_prefix(package)
    except (PackageNotFoundError, EnvironmentError):
        return None


def find_executable(package: str, executable: str) -> Tuple[Optional[str], str]:
    """
    Return the path of a program of a package, or ``None`` and the reason.

    :raises PackageNotFoundError: if there is no such package.
    """
    prefix = _find_in_index(package)
    folder = None if prefix is None else os.path.join(prefix, 'lib', package)
    if folder is not None:
        path = shutil.which(executable, path=folder)
        if path is not None:
            return path, ''
    known, problem = _ask_command('executables', package, executable)
    for each in known or ():
        path = each.get('path') if isinstance(each, dict) else None
        if path:
            return path, ''
    if folder is not None:
        if os.path.isdir(folder):
            return None, (
                f"executable '{executable}' not found on the libexec directory '{folder}' of "
                f"package '{package}'")
        return None, (
            f"package '{package}' found at '{prefix}', but libexec directory '{folder}' does "
            f"not exist; it should have executable '{executable}'")
    if problem is None or _ask_command('prefix', package)[0] is None:
        _raise_not_found(package, problem)
    return None, problem


def _raise_not_found(package: str, problem: Optional[str]) -> None:
    """Raise the error of an unknown package, with the command's text if there is one."""
    if problem is not None:
        raise PackageNotFoundError(problem)
    get_package_prefix(package)


def find_share_folder(package: str) -> str:
    """
    Return the share folder of a package.

    :raises PackageNotFoundError: if there is no such package.
    """
    if _find_in_index(package) is not None:
        return get_package_share_directory(package)
    known, problem = _ask_command('prefix', package)
    if not isinstance(known, dict) or 'share' not in known:
        _raise_not_found(package, problem)
    return known['share']
