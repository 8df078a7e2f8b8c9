"""Substitutions: the prefix and the share folder of a package."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions import PathJoinSubstitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

from launch_ros.utilities.packages import find_prefix, find_share_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


class FindPackage(Substitution):
    """Base of the substitutions that find a package; ``/`` adds a part to the path."""

    def __init__(self, package: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__package = normalize_to_list_of_substitutions(package)

    parse = parse_arguments('find package', 'package', error=AttributeError)

    @property
    def package(self) -> List[Substitution]:
        """The package's name."""
        return self.__package

    def find(self, package_name: str) -> str:
        """Return the path."""
        raise NotImplementedError(f'{type(self).__name__} does not implement find()')

    def describe(self) -> str:
        """Return a text for people."""
        return f'{type(self).__name__}(pkg={describe_substitutions(self.__package)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        return self.find(perform_substitutions(context, self.__package))

    def __truediv__(self, part: SomeSubstitutionsType) -> PathJoinSubstitution:
        return PathJoinSubstitution([self, part])


@expose_substitution('find-pkg-prefix')
class FindPackagePrefix(FindPackage):
    """The prefix that a package is installed in."""

    def find(self, package_name: str) -> str:
        """Return the prefix."""
        return find_prefix(package_name)


@expose_substitution('find-pkg-share')
class FindPackageShare(FindPackage):
    """The share folder of a package."""

    def find(self, package_name: str) -> str:
        """Return the folder."""
        return find_share_folder(package_name)
