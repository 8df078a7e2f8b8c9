"""Launch introspector: a launch description as a tree of text."""

from __future__ import annotations

from launch.action import Action
from launch.actions import EmitEvent, ExecuteProcess, LogInfo, RegisterEventHandler
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.utilities import normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List

    from launch.event_handler import BaseEventHandler
    from launch.launch_description import LaunchDescription
    from launch.some_substitutions_type import SomeSubstitutionsType


def indent(lines: List[str], indention: str = '    ') -> List[str]:
    """Return the lines, indented."""
    return [indention + line for line in lines]


def tree_like_indent(lines: List[str]) -> List[str]:
    """Return indented lines with branches drawn in front of them; others are left out."""
    lines = [line for line in lines if line.startswith('    ')]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    result = []
    for index, line in enumerate(lines):
        depth = depths[index]
        is_followed = index + 1 < len(lines) and depths[index + 1] >= depth
        trunk = ' ' if index + 1 == len(lines) and depth > 4 else '│'
        branch = '├── ' if is_followed else '└── '
        start = (trunk + ' ' * (depth - 1))[:depth - 4]
        result.append(start + branch + line[depth:])
    return result


def format_entities(entities: Iterable[LaunchDescriptionEntity]) -> List[str]:
    """Return a line per entity, with the lines of its parts below."""
    result = []
    for entity in entities:
        if isinstance(entity, Action):
            result.extend(format_action(entity))
        else:
            result.append(f"Unknown entity('{entity}')")
    return result


def format_substitutions(substitutions: SomeSubstitutionsType) -> str:
    """Return the descriptions of substitutions."""
    return ' + '.join(
        each.describe() for each in normalize_to_list_of_substitutions(substitutions))


def format_event_handler(event_handler: BaseEventHandler) -> List[str]:
    """Return a line for the handler, with the lines of its entities below."""
    if not hasattr(event_handler, 'describe'):
        return [f"EventHandler('{hex(id(event_handler))}')"]
    text, entities = event_handler.describe()
    if isinstance(entities, LaunchDescriptionEntity):
        entities = [entities]
    return [text, *indent(format_entities(entities))]


def _format_environment(environment: Any) -> str:
    if environment is None:
        return 'None'
    pairs = environment.items() if isinstance(environment, dict) else environment
    return '{' + ', '.join(
        f'{format_substitutions(name)}: {format_substitutions(value)}'
        for name, value in pairs) + '}'


def format_action(action: Action) -> List[str]:
    """Return a line for the action, with the lines of its parts below."""
    if isinstance(action, LogInfo):
        return [f'LogInfo({format_substitutions(action.msg)})']
    if isinstance(action, EmitEvent):
        return [f"EmitEvent(event='{action.event.name}')"]
    if isinstance(action, ExecuteProcess):
        command = ', '.join(format_substitutions(part) for part in action.cmd)
        folder = None if action.cwd is None else f"'{format_substitutions(action.cwd)}'"
        return [
            f'ExecuteProcess(cmd=[{command}], cwd={folder}, '
            f'env={_format_environment(action.env)}, shell={action.shell})']
    if isinstance(action, RegisterEventHandler):
        return [
            f"RegisterEventHandler('{action.event_handler}'):",
            *indent(format_event_handler(action.event_handler))]
    return [f"Action('{action}')"]


class LaunchIntrospector:
    """Formats launch descriptions."""

    def format_launch_description(self, launch_description: LaunchDescription) -> str:
        """Return the description as a tree of text."""
        lines = tree_like_indent(indent(format_entities(launch_description.entities)))
        return '\n'.join([str(launch_description), *lines])
