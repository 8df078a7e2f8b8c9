"""Launch files in Python."""

from __future__ import annotations

import importlib.machinery
import importlib.util

from launch._regular_file import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from launch.launch_description import LaunchDescription


class InvalidPythonLaunchFileError(Exception):
    """A Python launch file without ``generate_launch_description``."""


def load_python_launch_file_as_module(python_launch_file_path: str) -> ModuleType:
    """Run a Python launch file, whatever its ending, and return it as a module."""
    open_regular(python_launch_file_path).close()
    loader = importlib.machinery.SourceFileLoader(
        'python_launch_file', python_launch_file_path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def get_launch_description_from_python_launch_file(
    python_launch_file_path: str,
) -> LaunchDescription:
    """
    Return what ``generate_launch_description()`` of a file returns.

    :raises InvalidPythonLaunchFileError: if the file does not have it.
    """
    module = load_python_launch_file_as_module(python_launch_file_path)
    generate = getattr(module, 'generate_launch_description', None)
    if generate is None:
        raise InvalidPythonLaunchFileError(
            f"launch file at '{python_launch_file_path}' does not contain the required "
            "function 'generate_launch_description()'")
    return generate()
