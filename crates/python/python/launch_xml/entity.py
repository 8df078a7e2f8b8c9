"""Element of a launch file in XML."""

from __future__ import annotations

from launch.frontend import Entity as BaseEntity
from launch.frontend.type_utils import check_is_list_entity
from launch.utilities.type_utils import get_typed_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import xml.etree.ElementTree as ElementTree
    from typing import Any, List, Optional, Set


class Entity(BaseEntity):
    """An XML element."""

    def __init__(
        self, xml_element: ElementTree.Element = None, *, parent: Optional[Entity] = None,
    ) -> None:
        self.__element = xml_element
        self.__parent = parent
        self.__read_attributes: Set[str] = set()
        self.__read_children: Set[str] = set()

    @property
    def type_name(self) -> str:
        """The tag."""
        return self.__element.tag

    @property
    def parent(self) -> Optional[Entity]:
        """The element around it."""
        return self.__parent

    @property
    def children(self) -> List[Entity]:
        """The elements in it."""
        self.__read_children = {child.tag for child in self.__element}
        return [Entity(child, parent=self) for child in self.__element]

    def assert_entity_completely_parsed(self) -> None:
        """
        Check that every attribute and element has been read.

        :raises ValueError: if one has not.
        """
        tags = {child.tag for child in self.__element} - self.__read_children
        if tags:
            raise ValueError(
                f'Unexpected nested tag(s) found in `{self.type_name}`: {tags}')
        names = set(self.__element.attrib) - self.__read_attributes
        if names:
            raise ValueError(f'Unexpected attribute(s) found in `{self.type_name}`: {names}')

    def get_attr(
        self, name: str, *, data_type: Any = str, optional: bool = False, can_be_str: bool = True,
    ) -> Any:
        """Return an attribute, or the elements of a tag."""
        if check_is_list_entity(data_type):
            value = [Entity(child, parent=self) for child in self.__element if child.tag == name]
            if value:
                self.__read_children.add(name)
        else:
            value = self.__text(name)
        if not value and value != '':
            if optional:
                return None
            raise AttributeError(
                f"Attribute '{name}' of type '{data_type}' not found in Entity "
                f"'{self.type_name}'")
        if check_is_list_entity(data_type):
            return value
        try:
            return get_typed_value(value, data_type, can_be_str=can_be_str)
        except ValueError:
            raise TypeError(
                f"Attribute '{name}' of Entity '{self.type_name}' expected to be of type "
                f"'{data_type}'.'{value}' can not be converted to one of those types") from None

    def __text(self, name: str) -> Any:
        """Return the text of an attribute; a list if ``name-sep`` says how to split it."""
        value = self.__element.attrib.get(name)
        if value is None:
            return None
        self.__read_attributes.add(name)
        separator = self.__element.attrib.get(f'{name}-sep')
        if separator is None:
            return value
        self.__read_attributes.add(f'{name}-sep')
        return value.split(separator)
