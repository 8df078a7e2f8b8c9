"""Action: a group of actions."""

from __future__ import annotations

from typing import List

from launch.action import Action
from launch.actions.pop_environment import PopEnvironment
from launch.actions.pop_launch_configurations import PopLaunchConfigurations
from launch.actions.push_environment import PushEnvironment
from launch.actions.push_launch_configurations import PushLaunchConfigurations
from launch.actions.reset_environment import ResetEnvironment
from launch.actions.reset_launch_configurations import (
    ResetLaunchConfigurations, kept_configurations,
)
from launch.actions.set_launch_configuration import SetLaunchConfiguration
from launch.frontend.expose import expose_action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Optional, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_action('group')
class GroupAction(Action):
    """
    A group of actions.

    Changes of configurations and environment in it end with it, unless it is not scoped.
    Without forwarding, it begins with the given configurations alone.
    """

    def __init__(
        self,
        actions: Iterable[Action],
        *,
        scoped: bool = True,
        forwarding: bool = True,
        launch_configurations: Optional[
            Dict[SomeSubstitutionsType, SomeSubstitutionsType]] = None,
        **left_over_kwargs: Any,
    ) -> None:
        super().__init__(**left_over_kwargs)
        self.__actions = actions
        self.__scoped = scoped
        self.__forwarding = forwarding
        self.__launch_configurations = launch_configurations or {}
        self.__sub_entities: Optional[List[LaunchDescriptionEntity]] = None

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[GroupAction], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        for name in ('scoped', 'forwarding'):
            value = entity.get_attr(name, data_type=bool, optional=True)
            if value is not None:
                kwargs[name] = value
        kept = kept_configurations(entity, parser)
        if kept is not None:
            kwargs['launch_configurations'] = kept
        kwargs['actions'] = [
            parser.parse_action(child) for child in entity.children if child.type_name != 'keep']
        return cls, kwargs

    def get_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the actions, with those around them that make the scope."""
        if self.__sub_entities is None:
            self.__sub_entities = [*self.__prologue(), *self.__actions]
            if self.__scoped:
                self.__sub_entities += [PopEnvironment(), PopLaunchConfigurations()]
        return self.__sub_entities

    def __prologue(self) -> List[Action]:
        configurations = [
            SetLaunchConfiguration(name, value)
            for name, value in self.__launch_configurations.items()]
        if not self.__scoped:
            return configurations
        if self.__forwarding:
            return [PushLaunchConfigurations(), PushEnvironment(), *configurations]
        return [
            PushLaunchConfigurations(), PushEnvironment(), ResetEnvironment(),
            ResetLaunchConfigurations(self.__launch_configurations)]

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Return the actions."""
        return self.get_sub_entities()
