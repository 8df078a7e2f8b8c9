"""Action: declare an argument of the launch file."""

from __future__ import annotations

from typing import List

import launch.logging
from launch.action import Action
from launch.frontend import Entity
from launch.frontend.expose import expose_action
from launch.substitution import Substitution
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Text, Tuple, Type

    from launch.frontend import Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


def _description(description: Optional[str], choices: Optional[List[str]]) -> str:
    if choices is None:
        return 'no description given' if description is None else description
    if description is None:
        return f'One of: {choices}'
    end = '' if description.endswith('.') else '.'
    return f'{description}{end} Valid choices are: {choices}'


@expose_action('arg')
class DeclareLaunchArgument(Action):
    """
    An argument that the user or an including file may give: the launch configuration of the name.

    Without a value and a default, the launch fails.
    """

    def __init__(
        self,
        name: Text,
        *,
        default_value: Optional[SomeSubstitutionsType] = None,
        description: Optional[Text] = None,
        choices: Optional[List[Text]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.__logger = launch.logging.get_logger('launch.actions.declare_launch_argument')
        self.__name = name
        self.__default_value = (
            None if default_value is None else normalize_to_list_of_substitutions(default_value))
        if choices is not None:
            if len(choices) == 0:
                raise self.__error(
                    'Provided choices arg is empty. Use None to ignore the choice list.')
            is_known = default_value is not None and not isinstance(
                default_value, (Substitution, list))
            if is_known and default_value not in choices:
                raise self.__error(
                    f'Provided default_value "{default_value}" is not in provided choices '
                    f'"{choices}".')
        self.__choices = choices
        self.__description = _description(description, choices)
        # Whether it may not be visited: it or what it lies in has a condition.
        self._conditionally_included = False

    def __error(self, text: str) -> RuntimeError:
        self.__logger.error(text)
        return RuntimeError(text)

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[DeclareLaunchArgument], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['name'] = parser.escape_characters(entity.get_attr('name'))
        default = entity.get_attr('default', optional=True)
        if default is not None:
            kwargs['default_value'] = parser.parse_substitution(default)
        description = entity.get_attr('description', optional=True)
        if description is not None:
            kwargs['description'] = parser.escape_characters(description)
        choices = entity.get_attr('choice', data_type=List[Entity], optional=True)
        if choices is not None:
            kwargs['choices'] = [
                parser.escape_characters(choice.get_attr('value')) for choice in choices]
        return cls, kwargs

    @property
    def name(self) -> str:
        """The argument's name."""
        return self.__name

    @property
    def default_value(self) -> Optional[List[Substitution]]:
        """The value if none is given."""
        return self.__default_value

    @property
    def description(self) -> str:
        """What it is, for people."""
        return self.__description

    @property
    def choices(self) -> Optional[List[str]]:
        """The valid values; ``None`` if all are."""
        return self.__choices

    def execute(self, context: LaunchContext) -> None:
        """Set the launch configuration to the default if it is not set, and check it."""
        configurations = context.launch_configurations
        if self.__name not in configurations:
            if self.__default_value is None:
                self.__logger.error(
                    f'Required launch argument "{self.__name}" (description: '
                    f'"{self.__description}") was not provided')
                raise RuntimeError(
                    f'Required launch argument "{self.__name}" was not provided.')
            configurations[self.__name] = perform_substitutions(context, self.__default_value)
        value = configurations[self.__name]
        if self.__choices is not None and value not in self.__choices:
            raise self.__error(
                f'Argument "{self.__name}" provided value "{value}" is not valid. Valid options '
                f'are: {self.__choices}')
