"""Action: include a launch description, mostly that of another launch file."""

from __future__ import annotations

import os
from typing import List

import launch.logging
from launch.action import Action
from launch.actions.set_launch_configuration import SetLaunchConfiguration
from launch.frontend import Entity
from launch.frontend.expose import expose_action
from launch.launch_context import LaunchContext
from launch.launch_description_source import LaunchDescriptionSource
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Optional, Tuple, Type, Union

    from launch.frontend import Parser
    from launch.launch_description import LaunchDescription
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType

    Arguments = Iterable[Tuple[SomeSubstitutionsType, SomeSubstitutionsType]]


_PLACE_NAMES = ('current_launch_file_path', 'current_launch_file_directory')


@expose_action('include')
class IncludeLaunchDescription(Action):
    """Includes a launch description: a source, or the path of a launch file."""

    def __init__(
        self,
        launch_description_source: Union[LaunchDescriptionSource, SomeSubstitutionsType],
        *,
        launch_arguments: Optional[Arguments] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(launch_description_source, LaunchDescriptionSource):
            launch_description_source = AnyLaunchDescriptionSource(launch_description_source)
        self.__source = launch_description_source
        self.__arguments = () if launch_arguments is None else tuple(launch_arguments)
        self.__place_before: Optional[Dict[str, Any]] = None
        self.__logger = launch.logging.get_logger('launch.actions.include_launch_description')

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[IncludeLaunchDescription], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['launch_description_source'] = parser.parse_substitution(entity.get_attr('file'))
        arguments = entity.get_attr('arg', data_type=List[Entity], optional=True)
        if arguments is not None:
            kwargs['launch_arguments'] = [
                (parser.parse_substitution(each.get_attr('name')),
                 parser.parse_substitution(each.get_attr('value')))
                for each in arguments]
            for each in arguments:
                each.assert_entity_completely_parsed()
        return cls, kwargs

    @property
    def launch_description_source(self) -> LaunchDescriptionSource:
        """The source."""
        return self.__source

    @property
    def launch_arguments(self) -> Tuple[Any, ...]:
        """Names and values of arguments."""
        return self.__arguments

    def _get_launch_file(self) -> str:
        return os.path.abspath(self.__source.location)

    def _get_launch_file_directory(self) -> str:
        path = self._get_launch_file()
        return os.path.dirname(path) if os.path.exists(path) else self.__source.location

    def get_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the description, if its place is known without a context."""
        description = self.__source.try_get_launch_description_without_context()
        return [] if description is None else [description]

    def __argument_names(self, context: LaunchContext) -> List[str]:
        return [
            perform_substitutions(context, normalize_to_list_of_substitutions(name))
            for name, _ in self.__arguments]

    def _try_get_arguments_names_without_context(self) -> List[str]:
        try:
            return self.__argument_names(LaunchContext())
        except Exception as error:
            self.__logger.debug(
                'Failed to get launch arguments names for launch description '
                f"'{self.__source.location}', with exception: {error}")
            return []

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Read the description, and return it behind its arguments."""
        try:
            description = self.__source.get_launch_description(context)
        except Exception:
            if context.plan is None or os.path.exists(self._get_launch_file()):
                raise
            context.plan.add_missing(f"launch file '{self.__source.location}' is not there")
            return None
        path = self._get_launch_file()
        known = context.get_locals_as_dict()
        self.__place_before = {name: known.get(name) for name in _PLACE_NAMES}
        context.extend_locals(dict(zip(_PLACE_NAMES, (path, self._get_launch_file_directory()))))
        if context.plan is not None:
            context.plan.add_file(path)
        self.__check_arguments(description, self.__argument_names(context))
        return [
            *(SetLaunchConfiguration(name, value) for name, value in self.__arguments),
            description]

    def _finish_visit(self, context: LaunchContext) -> None:
        """Give the rest of the including file its own place again."""
        if self.__place_before is not None:
            context.extend_locals(self.__place_before)

    def __check_arguments(self, description: LaunchDescription, given: List[str]) -> None:
        """Raise an error if an argument without a default is not given."""
        declared = description.get_launch_arguments_with_include_launch_description_actions()
        for argument, includes in declared:
            if argument._conditionally_included or argument.default_value is not None:
                continue
            names = list(given)
            for include in includes or ():
                names.extend(include._try_get_arguments_names_without_context())
            if argument.name not in names:
                raise RuntimeError(
                    f"Included launch description missing required argument '{argument.name}' "
                    f"(description: '{argument.description}'), given: [{', '.join(names)}]")
