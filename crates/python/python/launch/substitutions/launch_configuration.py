"""Substitution: a launch configuration."""

from __future__ import annotations

import collections.abc

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List, Optional, Union

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


def default_substitutions(default: Any) -> Optional[List[Substitution]]:
    """Return the substitutions of a default of any type; ``None`` if there is none."""
    if default is None:
        return None
    if isinstance(default, str) or not isinstance(default, collections.abc.Iterable):
        default = (default,)
    return normalize_to_list_of_substitutions([
        part if isinstance(part, (str, Substitution)) else str(part) for part in default])


@expose_substitution('var')
class LaunchConfiguration(Substitution):
    """A launch configuration: an argument or a variable."""

    def __init__(
        self,
        variable_name: SomeSubstitutionsType,
        *,
        default: Optional[Union[Any, Iterable[Any]]] = None,
    ) -> None:
        super().__init__()
        self.__variable_name = normalize_to_list_of_substitutions(variable_name)
        self.__default = default_substitutions(default)

    parse = parse_arguments('var', 'variable_name', 'default', optional=1)

    @property
    def variable_name(self) -> List[Substitution]:
        """The configuration's name."""
        return self.__variable_name

    def describe(self) -> str:
        """Return a text for people."""
        return f'LaunchConfig({describe_substitutions(self.__variable_name)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        name = perform_substitutions(context, self.__variable_name)
        if name in context.launch_configurations:
            return context.launch_configurations[name]
        if self.__default is None:
            raise SubstitutionFailure(f"launch configuration '{name}' does not exist")
        return perform_substitutions(context, self.__default)
