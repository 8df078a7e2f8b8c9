"""Resources of the ament index: small files by type and name."""

from __future__ import annotations

import os

from ament_index_python.constants import RESOURCE_INDEX_SUBFOLDER
from ament_index_python.search_paths import get_search_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Literal, Set, Tuple, Union


class InvalidResourceTypeNameError(ValueError):
    """The type of a resource is no file name."""


class InvalidResourceNameError(ValueError):
    """The name of a resource is no file name."""


def _name_is_invalid(resource_name: str) -> bool:
    return '/' in resource_name or '\\' in resource_name


def _check_type(resource_type: str) -> None:
    if not resource_type:
        raise ValueError('The resource type must not be empty')
    if _name_is_invalid(resource_type):
        raise InvalidResourceTypeNameError(
            f"Resource type '{resource_type}' has an invalid name: it has a separator in it")


def _check_name(resource_name: str) -> None:
    if not resource_name:
        raise ValueError('The resource name must not be empty')
    if _name_is_invalid(resource_name):
        raise InvalidResourceNameError(
            f"Resource name '{resource_name}' has an invalid name: it has a separator in it")


def get_resource(resource_type: str, resource_name: str) -> Tuple[str, str]:
    """
    Return the content of a resource, and the prefix that has it.

    :raises ValueError: if the type or the name is empty.
    :raises OSError: if the resource cannot be read.
    :raises LookupError: if no prefix has it.
    """
    _check_type(resource_type)
    _check_name(resource_name)
    for prefix in get_search_paths():
        path = os.path.join(prefix, RESOURCE_INDEX_SUBFOLDER, resource_type, resource_name)
        if os.path.isfile(path):
            try:
                with open(path) as file:
                    return file.read(), prefix
            except OSError as error:
                raise OSError(
                    f"Could not open the resource '{resource_name}' of type "
                    f"'{resource_type}':\n{error}") from error
    raise LookupError(f"Could not find the resource '{resource_name}' of type '{resource_type}'")


def get_resources(resource_type: str) -> Dict[str, str]:
    """
    Return the names of all resources of a type, with the prefix of each.

    :raises ValueError: if the type is empty.
    """
    _check_type(resource_type)
    resources: Dict[str, str] = {}
    for prefix in get_search_paths():
        folder = os.path.join(prefix, RESOURCE_INDEX_SUBFOLDER, resource_type)
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                # A folder is no resource, and hidden files are not either.
                if not name.startswith('.') and os.path.isfile(os.path.join(folder, name)):
                    resources.setdefault(name, prefix)
    return resources


def get_resource_types() -> Set[str]:
    """Return the types of all resources."""
    types: Set[str] = set()
    for prefix in get_search_paths():
        folder = os.path.join(prefix, RESOURCE_INDEX_SUBFOLDER)
        if os.path.isdir(folder):
            types.update(
                name for name in os.listdir(folder)
                if not name.startswith('.') and os.path.isdir(os.path.join(folder, name)))
    return types


def has_resource(resource_type: str, resource_name: str) -> Union[str, Literal[False]]:
    """
    Return the prefix that has a resource, or ``False``.

    :raises ValueError: if the type or the name is empty.
    """
    _check_type(resource_type)
    _check_name(resource_name)
    for prefix in get_search_paths():
        if os.path.isfile(
                os.path.join(prefix, RESOURCE_INDEX_SUBFOLDER, resource_type, resource_name)):
            return prefix
    return False
