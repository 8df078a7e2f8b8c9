"""Regular files: opened for reading, without waiting for the writer of a FIFO."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from launch.utilities.typing_file_path import FilePath


def open_regular(path: FilePath) -> TextIO:
    """
    Open a regular file, or a link to one, as text.

    :raises OSError: if it cannot be opened, or is a FIFO, socket or device.
    """
    file = open(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"'{os.fsdecode(path)}' is a FIFO or device, not a regular file")
    return file


def read_regular(path: FilePath) -> str:
    """Return the text of a regular file; see :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()
