"""Entity: an element of a launch file, whatever its format."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional


class Entity:
    """An element with attributes and children; formats derive from it."""

    @property
    def type_name(self) -> str:
        """The name of the element: 'node', 'group', …."""
        raise NotImplementedError(f'{type(self).__name__} does not implement type_name')

    @property
    def parent(self) -> Optional[Entity]:
        """The element around it."""
        raise NotImplementedError(f'{type(self).__name__} does not implement parent')

    @property
    def children(self) -> List[Entity]:
        """The elements in it."""
        raise NotImplementedError(f'{type(self).__name__} does not implement children')

    def get_attr(
        self, name: str, *, data_type: Any = str, optional: bool = False, can_be_str: bool = True,
    ) -> Any:
        """
        Return an attribute.

        :param data_type: A type of :mod:`launch.utilities.type_utils`; ``List[Entity]`` for
            the elements of that name; ``None`` for any type.
        :param optional: Return ``None`` if it is not there.
        :param can_be_str: Return text that is not of the type as text.
        :raises AttributeError: if it is not there.
        :raises TypeError: if it is of another type.
        """
        raise NotImplementedError(f'{type(self).__name__} does not implement get_attr()')

    def assert_entity_completely_parsed(self) -> None:
        """
        Check that every attribute and child has been read.

        :raises ValueError: if one has not.
        """
        raise NotImplementedError(
            f'{type(self).__name__} does not implement assert_entity_completely_parsed()')
