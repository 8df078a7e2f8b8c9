"""Substitution: a parameter that the launch has set."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions import SubstitutionFailure
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.launch_configuration import default_substitutions
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List, Optional, Union

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('param')
class Parameter(Substitution):
    """A parameter that SetParameter has set."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        *,
        default: Optional[Union[Any, Iterable[Any]]] = None,
    ) -> None:
        super().__init__()
        self.__name = normalize_to_list_of_substitutions(name)
        self.__default = default_substitutions(default)

    parse = parse_arguments('param', 'name', 'default', optional=1)

    @property
    def name(self) -> List[Substitution]:
        """The parameter's name."""
        return self.__name

    def describe(self) -> str:
        """Return a text for people."""
        return f'{type(self).__name__}(name={describe_substitutions(self.__name)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        name = perform_substitutions(context, self.__name)
        for each in context.launch_configurations.get('global_params', []):
            if isinstance(each, tuple) and each[0] == name:
                return str(each[1])
        if self.__default is None:
            raise SubstitutionFailure(f"parameter '{name}' not found")
        return perform_substitutions(context, self.__default)
