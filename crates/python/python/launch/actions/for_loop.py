"""Actions: repeat actions, for each of several values or a number of times."""

from __future__ import annotations

from launch.action import Action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch.utilities.yaml_reader import YamlError, load_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional

    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType

    Function = Callable[..., Optional[Iterable[LaunchDescriptionEntity]]]

REPETITIONS_MAX = 10_000
"""The largest number of repetitions."""


class ForEach(Action):
    """
    Calls a function for each of several values, and visits what it returns.

    Values are YAML mappings with semicolons between them, such as
    ``{name: 'a', id: 1};{name: 'b', id: 2}``. Their entries are the keyword arguments.
    """

    def __init__(
        self, input_values: SomeSubstitutionsType, *, function: Function, **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.__input_values = normalize_to_list_of_substitutions(input_values)
        self.__function = function

    @property
    def input_values(self) -> Any:
        """The values."""
        return self.__input_values

    @property
    def function(self) -> Function:
        """The function."""
        return self.__function

    def execute(self, context: LaunchContext) -> List[LaunchDescriptionEntity]:
        """Call the function, and return all entities."""
        entities: List[LaunchDescriptionEntity] = []
        for values in _split(perform_substitutions(context, self.__input_values)):
            entities.extend(self.__function(**values) or ())
        return entities


def _split(text: str) -> List[Dict[str, Any]]:
    parts = [part for part in text.split(';') if part.strip()]
    if len(parts) > REPETITIONS_MAX:
        raise RuntimeError(f'ForEach got {len(parts)} values, more than {REPETITIONS_MAX}')
    values = []
    for part in parts:
        try:
            value = load_yaml(part)
        except YamlError as error:
            raise RuntimeError(f"ForEach got '{part}', which is not valid YAML: {error}") from error
        if not isinstance(value, dict):
            raise RuntimeError(f"ForEach got '{part}', which is no mapping")
        values.append(value)
    return values


class ForLoop(Action):
    """Calls a function with 0, 1, 2 … below a length, and visits what it returns."""

    def __init__(
        self, length: SomeSubstitutionsType, *, function: Function, **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.__length = normalize_to_list_of_substitutions(length)
        self.__function = function

    @property
    def length(self) -> Any:
        """The length."""
        return self.__length

    @property
    def function(self) -> Function:
        """The function."""
        return self.__function

    def execute(self, context: LaunchContext) -> List[LaunchDescriptionEntity]:
        """Call the function, and return all entities."""
        text = perform_substitutions(context, self.__length)
        try:
            length = int(text)
        except ValueError:
            raise RuntimeError(f"ForLoop got the length '{text}', which is no integer") from None
        if length > REPETITIONS_MAX:
            raise RuntimeError(f'ForLoop got the length {length}, more than {REPETITIONS_MAX}')
        entities: List[LaunchDescriptionEntity] = []
        for index in range(length):
            entities.extend(self.__function(index) or ())
        return entities
