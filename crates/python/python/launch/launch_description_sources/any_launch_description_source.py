"""Launch description from a file in any format."""

from __future__ import annotations

from launch.launch_description_source import LaunchDescriptionSource
from launch.launch_description_sources.any_launch_file_utilities import (
    get_launch_description_from_any_launch_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_description import LaunchDescription
    from launch.some_substitutions_type import SomeSubstitutionsType


class AnyLaunchDescriptionSource(LaunchDescriptionSource):
    """A launch file in the format of its name, or else in any format."""

    def __init__(self, launch_file_path: SomeSubstitutionsType) -> None:
        super().__init__(None, launch_file_path, 'interpreted launch file')

    def _get_launch_description(self, location: str) -> LaunchDescription:
        return get_launch_description_from_any_launch_file(location)
