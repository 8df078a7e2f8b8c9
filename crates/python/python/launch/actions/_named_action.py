"""Bases of actions on an environment variable or a launch configuration."""

from __future__ import annotations

from launch.action import Action
from launch.utilities import normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


class NamedAction(Action):
    """An action on the variable or configuration with a name."""

    _TEXTS = {'name': 'name'}

    def __init__(self, name: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._name = normalize_to_list_of_substitutions(name)

    @property
    def name(self) -> List[Substitution]:
        """The name of the variable or configuration."""
        return self._name


class NamedValueAction(NamedAction):
    """An action that gives it a value."""

    _TEXTS = {'name': 'name', 'value': 'value'}

    def __init__(
        self, name: SomeSubstitutionsType, value: SomeSubstitutionsType, **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._value = normalize_to_list_of_substitutions(value)

    @property
    def value(self) -> List[Substitution]:
        """The value, or what is added to it."""
        return self._value
