"""Substitution: the path of a package's program."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.plan import plan_of
from launch.substitutions import SubstitutionFailure
from launch.substitutions._parse_arguments import parse_arguments
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

from launch_ros.substitutions.find_package import FindPackagePrefix
from launch_ros.utilities.packages import find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_substitution('exec-in-pkg')
class ExecutableInPackage(FindPackagePrefix):
    """The path of a package's program."""

    def __init__(
        self, executable: SomeSubstitutionsType, package: SomeSubstitutionsType,
    ) -> None:
        super().__init__(package)
        self.__executable = normalize_to_list_of_substitutions(executable)

    parse = parse_arguments(
        'exec-in-package', 'executable', 'package', error=AttributeError)

    @property
    def executable(self) -> List[Substitution]:
        """The program's name."""
        return self.__executable

    def describe(self) -> str:
        """Return a text for people."""
        return (
            f'ExecInPkg(pkg={describe_substitutions(self.package)}, '
            f'exec={describe_substitutions(self.__executable)})')

    def perform(self, context: LaunchContext) -> str:
        """Return the path, with the further words of a built-in node."""
        return ' '.join(self.words(context))

    def words(self, context: LaunchContext) -> List[str]:
        """Return the first words of the program's command line: its path, and those of Pteros."""
        executable = perform_substitutions(context, self.__executable)
        package = perform_substitutions(context, self.package)
        words, reason = find_program(package, executable)
        if words:
            return words
        plan = plan_of(context)
        if plan is None:
            raise SubstitutionFailure(reason)
        path = f'{package}/{executable}'
        plan.add_missing(reason, path)
        return [path]
