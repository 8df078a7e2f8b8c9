"""Launch files in XML, YAML and other formats."""

from __future__ import annotations

from launch.frontend import InvalidFrontendLaunchFileError, Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Type

    from launch.launch_description import LaunchDescription

__all__ = [
    'InvalidFrontendLaunchFileError', 'get_launch_description_from_frontend_launch_file']


def get_launch_description_from_frontend_launch_file(
    frontend_launch_file_path: str, *, parser: Type[Parser] = Parser,
) -> LaunchDescription:
    """Return the launch description of a file."""
    root, reader = parser.load(frontend_launch_file_path)
    return reader.parse_description(root)
