"""Element of a launch file in YAML."""

from __future__ import annotations

from launch.frontend import Entity as BaseEntity
from launch.frontend.type_utils import check_is_list_entity
from launch.utilities.type_utils import is_instance_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Set


class Entity(BaseEntity):
    """A value of a YAML mapping, with its key as name."""

    def __init__(
        self, element: Any, type_name: str = None, *, parent: Optional[Entity] = None,
    ) -> None:
        self.__type_name = type_name
        self.__element = element
        self.__parent = parent
        self.__read_keys: Set[str] = set()
        self.__are_children_read = False

    @property
    def type_name(self) -> str:
        """The key."""
        return self.__type_name

    @property
    def parent(self) -> Optional[Entity]:
        """The element around it."""
        return self.__parent

    @property
    def children(self) -> List[Entity]:
        """The entries of the list, or of the list below ``children``."""
        self.__are_children_read = True
        children = self.__element
        if isinstance(children, dict):
            if 'children' not in children:
                raise ValueError(
                    f'Expected entity `{self.__type_name}` to have children entities.'
                    'That can be a list of subentities or a dictionary with a `children` list '
                    'element')
            self.__read_keys.add('children')
            children = children['children']
        if not isinstance(children, list):
            raise TypeError(
                f'Expected a dict or list, got {type(children)}:\n---\n{children}\n---')
        entities = []
        for child in children:
            if not isinstance(child, dict) or len(child) != 1:
                raise RuntimeError(
                    'Subentities must be a dictionary with only one key, which is the entity '
                    f'type; got {child!r}')
            name, element = next(iter(child.items()))
            entities.append(Entity(element, name, parent=self))
        return entities

    def assert_entity_completely_parsed(self) -> None:
        """
        Check that every key has been read.

        :raises ValueError: if one has not.
        """
        if isinstance(self.__element, list):
            if not self.__are_children_read:
                raise ValueError(
                    f'Unexpected nested entity(ies) found in `{self.__type_name}`: '
                    f'{self.__element}')
            return
        keys = set(self.__element or ()) - self.__read_keys
        if keys:
            raise ValueError(f'Unexpected key(s) found in `{self.__type_name}`: {keys}')

    def get_attr(
        self, name: str, *, data_type: Any = str, optional: bool = False, can_be_str: bool = True,
    ) -> Any:
        """Return the value of a key, or the entities of its list."""
        if self.__element is None or name not in self.__element:
            if optional:
                return None
            raise AttributeError(
                f"Can not find attribute '{name}' in Entity '{self.type_name}'")
        self.__read_keys.add(name)
        value = self.__element[name]
        if check_is_list_entity(data_type):
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                raise TypeError(
                    f"Attribute '{name}' of Entity '{self.type_name}' expected to be a list of "
                    'dictionaries.')
            return [Entity(each, name, parent=self) for each in value]
        if not is_instance_of(value, data_type, can_be_str=can_be_str):
            raise TypeError(
                f"Attribute '{name}' of Entity '{self.type_name}' expected to be of type "
                f"'{data_type}', got '{type(value)}'")
        return value
