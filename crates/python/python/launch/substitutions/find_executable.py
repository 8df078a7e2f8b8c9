"""Substitution: the path of a program."""

from __future__ import annotations

import shutil

from launch.frontend.expose import expose_substitution
from launch.plan import plan_of
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('find-exec')
class FindExecutable(Substitution):
    """The path of a program that PATH has."""

    def __init__(self, *, name: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__name = normalize_to_list_of_substitutions(name)

    parse = parse_arguments('find-exec', 'name', error=AttributeError)

    @property
    def name(self) -> List[Substitution]:
        """The program's name."""
        return self.__name

    def describe(self) -> str:
        """Return a text for people."""
        return f'FindExec({describe_substitutions(self.__name)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        name = perform_substitutions(context, self.__name)
        path = shutil.which(name)
        if path is not None:
            return path
        reason = f"executable '{name}' not found on the PATH"
        plan = plan_of(context)
        if plan is None:
            raise SubstitutionFailure(reason)
        plan.add_missing(reason, name)
        return name
