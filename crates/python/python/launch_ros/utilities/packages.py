"""
Packages and their programs, found by the native module: those of the ament index and of the
Cargo workspace around the current folder, and programs that pip installed.
"""

from __future__ import annotations

import os

from ament_index_python.packages import PackageNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

COMMAND_VARIABLE = 'PTEROS_COMMAND'
"""Environment variable with the path of the command that has started this Python."""

SWITCH_VARIABLE = 'PTEROS_BUILT_IN_NODES'
"""Environment variable that leaves out the command's built-in nodes."""


def find_program(package: str, executable: str) -> Tuple[List[str], str]:
    """
    Return the first words of the command line of a package's program, or none and the reason.

    They are its path. A built-in node has further ones.

    :raises PackageNotFoundError: if there is no such package.
    """
    from pteros import _native
    try:
        switch = os.environ.get(SWITCH_VARIABLE)
        path, arguments = _native.find_program(package, executable, *_places(), switch)
        return [str(path), *arguments], ''
    except LookupError as error:
        _find(package)
        return [], f"executable '{executable}' not found: {error}"


def find_share_folder(package: str) -> str:
    """
    Return the share folder of a package.

    :raises PackageNotFoundError: if there is no such package.
    """
    return _find(package)[1]


def find_prefix(package: str) -> str:
    """
    Return the prefix that a package is installed in, or the folder of a Cargo package.

    :raises PackageNotFoundError: if there is no such package.
    """
    return _find(package)[0]


def _places() -> Tuple[Optional[str], Optional[str]]:
    return os.environ.get(COMMAND_VARIABLE), os.environ.get('CARGO_TARGET_DIR')


def _find(package: str) -> Tuple[str, str]:
    from pteros import _native
    try:
        prefix, share = _native.find_package(package, *_places())
    except LookupError as error:
        # Programs look for ROS 2's words.
        raise PackageNotFoundError(f"package '{package}' not found: {error}") from None
    return str(prefix), str(share)
