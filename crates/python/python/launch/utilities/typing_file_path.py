"""Type of arguments that take the path of a file."""

import os
import typing

FilePath = typing.TypeVar('FilePath', str, bytes, os.PathLike)
