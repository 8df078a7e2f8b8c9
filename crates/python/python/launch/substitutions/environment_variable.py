"""Substitution: an environment variable."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('env')
class EnvironmentVariable(Substitution):
    """An environment variable, as the launch has set it so far."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        *,
        default_value: Optional[SomeSubstitutionsType] = None,
    ) -> None:
        super().__init__()
        self.__name = normalize_to_list_of_substitutions(name)
        self.__default_value = (
            None if default_value is None else normalize_to_list_of_substitutions(default_value))

    parse = parse_arguments('env', 'name', 'default_value', optional=1)

    @property
    def name(self) -> List[Substitution]:
        """The variable's name."""
        return self.__name

    @property
    def default_value(self) -> Optional[List[Substitution]]:
        """The value of a variable that is not set."""
        return self.__default_value

    def describe(self) -> str:
        """Return a text for people."""
        return f'EnvVar({describe_substitutions(self.__name)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        name = perform_substitutions(context, self.__name)
        value = context.environment.get(name)
        if value is not None:
            return value
        if self.__default_value is None:
            raise SubstitutionFailure(f"environment variable '{name}' does not exist")
        return perform_substitutions(context, self.__default_value)
