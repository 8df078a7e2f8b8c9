"""Bases of actions on an environment variable or a launch configuration."""

from __future__ import annotations

from launch.action import Action
from launch.utilities import normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


class NamedAction(Action):
    """An action on the variable or configuration with a name."""

    def __init__(self, name: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._name = normalize_to_list_of_substitutions(name)

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[Action], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['name'] = parser.parse_substitution(entity.get_attr('name'))
        return cls, kwargs

    @property
    def name(self) -> List[Substitution]:
        """The name of the variable or configuration."""
        return self._name


class NamedValueAction(NamedAction):
    """An action that gives it a value."""

    def __init__(
        self, name: SomeSubstitutionsType, value: SomeSubstitutionsType, **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._value = normalize_to_list_of_substitutions(value)

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[Action], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['value'] = parser.parse_substitution(entity.get_attr('value'))
        return cls, kwargs

    @property
    def value(self) -> List[Substitution]:
        """The value, or what is added to it."""
        return self._value
