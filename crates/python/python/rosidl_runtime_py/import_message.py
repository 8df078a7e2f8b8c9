"""Classes of interface types."""

from __future__ import annotations

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def import_message_from_namespaced_type(message_type: Any) -> Any:
    """
    Return the class of a type.

    :param message_type: A ``rosidl_parser.definition.NamespacedType``.
    :raises ModuleNotFoundError: if there is no such package.
    :raises AttributeError: if the package has no such interface.
    """
    if hasattr(message_type, 'value_type'):
        warnings.warn(
            'passing an array or sequence type is deprecated; pass its element type',
            DeprecationWarning, stacklevel=2)
        message_type = message_type.value_type
    from importlib import import_module
    module = import_module('.'.join(message_type.namespaces))
    try:
        return getattr(module, message_type.name)
    except AttributeError:
        pass
    # Parts of services and actions are attributes of a module below.
    from rosidl_runtime_py.utilities import _part_module
    name = _part_module(message_type)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    return getattr(module, message_type.name)
