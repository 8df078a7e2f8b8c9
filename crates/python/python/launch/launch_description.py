"""Launch description: a list of entities."""

from __future__ import annotations

import launch.logging
from launch.launch_description_entity import LaunchDescriptionEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple

    from launch.action import Action
    from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
    from launch.launch_context import LaunchContext

    Includes = Optional[List[IncludeLaunchDescription]]


class LaunchDescription(LaunchDescriptionEntity):
    """A list of entities, visited in their order."""

    def __init__(
        self,
        initial_entities: Optional[Iterable[LaunchDescriptionEntity]] = None,
        *,
        deprecated_reason: Optional[str] = None,
    ) -> None:
        self.__entities = [] if initial_entities is None else list(initial_entities)
        self.__deprecated_reason = deprecated_reason

    @property
    def entities(self) -> List[LaunchDescriptionEntity]:
        """The entities."""
        return self.__entities

    @property
    def deprecated(self) -> bool:
        """Whether a visit warns."""
        return self.__deprecated_reason is not None

    @property
    def deprecated_reason(self) -> Optional[str]:
        """The text of the warning."""
        return self.__deprecated_reason

    def add_entity(self, entity: LaunchDescriptionEntity) -> None:
        """Append an entity."""
        self.__entities.append(entity)

    def add_action(self, action: Action) -> None:
        """Append an action."""
        self.add_entity(action)

    def describe(self) -> str:
        """Return a text for people."""
        return repr(self)

    def visit(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Return the entities."""
        if self.__deprecated_reason is not None:
            path = context.get_locals_as_dict().get('current_launch_file_path')
            name = 'deprecated launch description' if path is None else (
                f'launch file [{path}] is deprecated')
            launch.logging.get_logger().warning(f'{name}: {self.__deprecated_reason}')
        return self.__entities

    def describe_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the entities."""
        return self.__entities

    def get_launch_arguments(
        self, conditional_inclusion: bool = False,
    ) -> List[DeclareLaunchArgument]:
        """Return the declared arguments, those of included descriptions too."""
        found = self.get_launch_arguments_with_include_launch_description_actions(
            conditional_inclusion)
        return [argument for argument, _ in found]

    def get_launch_arguments_with_include_launch_description_actions(
        self, conditional_inclusion: bool = False,
    ) -> List[Tuple[DeclareLaunchArgument, Includes]]:
        """Return the declared arguments, each with the includes that lead to it."""
        found: List[Tuple[DeclareLaunchArgument, Includes]] = []
        _collect_arguments(self.__entities, conditional_inclusion, None, found)
        return found


def _collect_arguments(
    entities: Iterable[LaunchDescriptionEntity],
    is_conditional: bool,
    includes: Includes,
    found: List[Tuple[DeclareLaunchArgument, Includes]],
) -> None:
    from launch.actions import (
        DeclareLaunchArgument, IncludeLaunchDescription, ResetLaunchConfigurations,
    )
    for entity in entities:
        if isinstance(entity, ResetLaunchConfigurations):
            # What is declared behind it does not see the arguments of the caller.
            return
        if isinstance(entity, DeclareLaunchArgument):
            if any(entity.name == known.name for known, _ in found):
                continue
            entity._conditionally_included = is_conditional or entity.condition is not None
            found.append((entity, includes))
        inner = includes
        if isinstance(entity, IncludeLaunchDescription):
            inner = [*(includes or []), entity]
        _collect_arguments(entity.describe_sub_entities(), False, inner, found)
        for _, conditional in entity.describe_conditional_sub_entities():
            _collect_arguments(conditional, True, inner, found)
