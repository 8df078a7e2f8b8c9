"""Launch description from a file in XML, YAML or another format."""

from __future__ import annotations

from launch.frontend import Parser
from launch.launch_description_source import LaunchDescriptionSource
from launch.launch_description_sources.frontend_launch_file_utilities import (
    get_launch_description_from_frontend_launch_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Type

    from launch.launch_description import LaunchDescription
    from launch.some_substitutions_type import SomeSubstitutionsType


class FrontendLaunchDescriptionSource(LaunchDescriptionSource):
    """A launch file in the format of a parser; by default that of its name."""

    def __init__(
        self,
        launch_file_path: SomeSubstitutionsType,
        *,
        method: str = 'interpreted frontend launch file',
        parser: Type[Parser] = Parser,
    ) -> None:
        super().__init__(None, launch_file_path, method)
        self._parser = parser

    def _get_launch_description(self, location: str) -> LaunchDescription:
        return get_launch_description_from_frontend_launch_file(location, parser=self._parser)
