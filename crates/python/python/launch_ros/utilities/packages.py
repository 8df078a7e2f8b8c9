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
    from typing import Any, Optional

COMMAND_VARIABLE = 'PTEROS_COMMAND'
"""Environment variable with the path of the command."""


def _ask_command(*arguments: str) -> Any:
    """Return what ``pteros pkg … --json`` prints; ``None`` without an answer."""
    own = os.path.join(sys.prefix, 'bin')
    command = (
        os.environ.get(COMMAND_VARIABLE) or shutil.which('pteros')
        or shutil.which('pteros', path=own))
    if not command:
        return None
    try:
        result = subprocess.run(
            [command, 'pkg', *arguments, '--json'], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10)
        return json.loads(result.stdout) if result.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def find_executable(package: str, executable: str) -> Optional[str]:
    """
    Return the path of a program of a package; ``None`` if the package does not have it.

    :raises PackageNotFoundError: if there is no such package.
    """
    folder = None
    try:
        folder = os.path.join(get_package_prefix(package), 'lib', package)
    except (PackageNotFoundError, EnvironmentError):
        pass
    if folder is not None:
        path = shutil.which(executable, path=folder)
        if path is not None:
            return path
    known = _ask_command('executables', package)
    for each in known or ():
        path = each.get('path') if isinstance(each, dict) else None
        if path and os.path.basename(path) == executable:
            return path
    if folder is None and not known:
        # It raises the error.
        get_package_prefix(package)
    return None


def find_share_folder(package: str) -> str:
    """
    Return the share folder of a package.

    :raises PackageNotFoundError: if there is no such package.
    """
    try:
        return get_package_share_directory(package)
    except (PackageNotFoundError, EnvironmentError):
        known = _ask_command('prefix', package)
        if not isinstance(known, dict) or 'share' not in known:
            raise
        return known['share']


def libexec_folder(package: str) -> str:
    """Return where the index says that the programs of a package are."""
    return os.path.join(get_package_prefix(package), 'lib', package)
