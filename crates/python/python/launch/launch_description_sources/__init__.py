"""Sources of launch descriptions: launch files."""

from launch.invalid_launch_file_error import InvalidLaunchFileError
from launch.launch_description_sources.any_launch_description_source import (
    AnyLaunchDescriptionSource,
)
from launch.launch_description_sources.any_launch_file_utilities import (
    get_launch_description_from_any_launch_file,
)
from launch.launch_description_sources.frontend_launch_description_source import (
    FrontendLaunchDescriptionSource,
)
from launch.launch_description_sources.frontend_launch_file_utilities import (
    InvalidFrontendLaunchFileError, get_launch_description_from_frontend_launch_file,
)
from launch.launch_description_sources.python_launch_description_source import (
    PythonLaunchDescriptionSource,
)
from launch.launch_description_sources.python_launch_file_utilities import (
    InvalidPythonLaunchFileError, get_launch_description_from_python_launch_file,
    load_python_launch_file_as_module,
)

__all__ = [
    'AnyLaunchDescriptionSource', 'FrontendLaunchDescriptionSource',
    'InvalidFrontendLaunchFileError', 'InvalidLaunchFileError', 'InvalidPythonLaunchFileError',
    'PythonLaunchDescriptionSource', 'get_launch_description_from_any_launch_file',
    'get_launch_description_from_frontend_launch_file',
    'get_launch_description_from_python_launch_file', 'load_python_launch_file_as_module',
]
