"""Types of attributes."""

from __future__ import annotations

from typing import List

from launch.frontend.entity import Entity
from launch.utilities.type_utils import is_typing_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

_TYPES: Dict[str, Any] = {
    'str': str, 'bool': bool, 'float': float, 'int': int, 'list_of_str': List[str],
    'list_of_bool': List[bool], 'list_of_float': List[float], 'list_of_int': List[int],
    'yaml': None,
}


def check_is_list_entity(data_type: Any) -> bool:
    """Return whether the type is ``List[Entity]``, with any class of entities."""
    return (
        is_typing_list(data_type) and isinstance(data_type.__args__[0], type)
        and issubclass(data_type.__args__[0], Entity))


def get_data_type_from_identifier(type_identifier: str) -> Any:
    """
    Return the type that a name such as 'list_of_int' means.

    :raises ValueError: if there is no such type.
    """
    if type_identifier not in _TYPES:
        raise ValueError(
            f"Got invalid type identifier '{type_identifier}', use one of {', '.join(_TYPES)}")
    return _TYPES[type_identifier]
