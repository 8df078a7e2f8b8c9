"""Search path of Python's command line programs in this package."""

import os
import sys


def prefer_own_packages() -> None:
    """
    Import the packages beside this one, whatever PYTHONPATH and the current folder have.

    Python's library comes before them, and the current folder last, if PYTHONPATH names it.
    """
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    here = os.getcwd()
    library = [path for path in sys.path if _is_of_library(path)]
    first = [*library, own]
    last = [here] if here in sys.path and here not in first else []
    rest = [path for path in sys.path if path not in ('', here, *first)]
    sys.path[:] = [*first, *rest, *last]


def _is_of_library(path: str) -> bool:
    """Return whether an entry of the search path has Python's own modules."""
    archive = f'python{sys.version_info[0]}{sys.version_info[1]}.zip'
    return path == os.path.dirname(os.__file__) or (
        os.path.basename(path) in ('lib-dynload', archive))
