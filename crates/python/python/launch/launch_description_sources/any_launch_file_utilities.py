"""Launch files in any format."""

from __future__ import annotations

import os

from launch.frontend import Parser
from launch.invalid_launch_file_error import InvalidLaunchFileError
from launch.launch_description_sources.frontend_launch_file_utilities import (
    get_launch_description_from_frontend_launch_file,
)
from launch.launch_description_sources.python_launch_file_utilities import (
    get_launch_description_from_python_launch_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Type

    from launch.launch_description import LaunchDescription


def get_launch_description_from_any_launch_file(
    launch_file_path: str, *, parser: Type[Parser] = Parser,
) -> LaunchDescription:
    """
    Return the launch description of a file; without a known ending, all formats are tried.

    :raises InvalidLaunchFileError: if no format can read it.
    """
    name = os.path.basename(launch_file_path)
    extension = os.path.splitext(name)[1][1:]

    def load_frontend(path: str) -> LaunchDescription:
        return get_launch_description_from_frontend_launch_file(path, parser=parser)

    loaders = [load_frontend, get_launch_description_from_python_launch_file]
    if extension == 'py':
        loaders = [get_launch_description_from_python_launch_file]
    elif Parser.is_filename_valid(name):
        loaders = [load_frontend]
    else:
        extension = ''
    errors: List[Exception] = []
    for load in loaders:
        try:
            return load(launch_file_path)
        except Exception as error:
            errors.append(error)
    raise InvalidLaunchFileError(extension, likely_errors=errors)
