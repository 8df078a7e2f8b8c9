"""Launch description from a YAML file."""

from __future__ import annotations

from launch.launch_description_sources import FrontendLaunchDescriptionSource
from launch_yaml.parser import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.some_substitutions_type import SomeSubstitutionsType


class YAMLLaunchDescriptionSource(FrontendLaunchDescriptionSource):
    """A launch file in YAML, whatever its name."""

    def __init__(self, launch_file_path: SomeSubstitutionsType) -> None:
        super().__init__(
            launch_file_path, method='interpreted YAML launch file', parser=Parser)
