"""Action: append to an environment variable."""

from __future__ import annotations

import os

from launch.actions._named_action import NamedValueAction
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch.utilities.type_utils import (
    normalize_typed_substitution, perform_typed_substitution,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple, Type, Union

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_action('append_env')
class AppendEnvironmentVariable(NamedValueAction):
    """Appends to an environment variable, or sets it if it is not there."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        value: SomeSubstitutionsType,
        prepend: Union[bool, SomeSubstitutionsType] = False,
        separator: SomeSubstitutionsType = os.pathsep,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, value, **kwargs)
        self.__prepend = normalize_typed_substitution(prepend, bool)
        self.__separator = normalize_to_list_of_substitutions(separator)

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[AppendEnvironmentVariable], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        prepend = entity.get_attr('prepend', optional=True, data_type=bool, can_be_str=True)
        if prepend is not None:
            kwargs['prepend'] = parser.parse_if_substitutions(prepend)
        separator = entity.get_attr('separator', optional=True)
        if separator is not None:
            kwargs['separator'] = parser.parse_substitution(separator)
        return cls, kwargs

    @property
    def prepend(self) -> Union[bool, List[Substitution]]:
        """Whether it goes in front."""
        return self.__prepend

    @property
    def separator(self) -> List[Substitution]:
        """The separator."""
        return self.__separator

    def execute(self, context: LaunchContext) -> None:
        """Append it."""
        name = perform_substitutions(context, self._name)
        parts = [perform_substitutions(context, self._value)]
        is_in_front = perform_typed_substitution(context, self.__prepend, bool)
        separator = perform_substitutions(context, self.__separator)
        if name in context.environment:
            parts.insert(len(parts) if is_in_front else 0, context.environment[name])
        context.environment[name] = separator.join(parts)
