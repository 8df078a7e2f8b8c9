"""
The command ``python3 -m pteros``: the command `pteros` of this Python's environment.

It also works where that command is not on PATH. `doctor` and `launch` then look at this Python.
"""

from __future__ import annotations

# flake8: noqa: E402
import sys

from pteros import _search_path

if __name__ == '__main__':
    # `python3 -m` puts the current folder first. The imports below must not look there.
    _search_path.prefer_own_packages()

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, NoReturn, Optional

PYTHON_VARIABLE = 'PTEROS_PYTHON'
"""The variable that tells the command which Python is meant."""


def find_command() -> Optional[str]:
    """Return the path of the command that pip installed with this package, or ``None``."""
    import importlib.metadata
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for distribution in importlib.metadata.distributions(name='pteros', path=[own]):
        for file in distribution.files or ():
            path = os.path.abspath(distribution.locate_file(file))
            if file.name == 'pteros' and os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    return None


def main(words: List[str]) -> NoReturn:
    """Replace this process by the command; it does not return."""
    command = find_command()
    if command is None:
        sys.exit(
            'error: the command `pteros` was not installed with this package; build the wheel with '
            '`cargo xtask wheel`, and install it with pip')
    os.execve(command, [command, *words], {**os.environ, PYTHON_VARIABLE: sys.executable})


if __name__ == '__main__':
    main(sys.argv[1:])
