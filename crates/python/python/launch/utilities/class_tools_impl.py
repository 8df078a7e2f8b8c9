"""Questions about classes."""

from __future__ import annotations

import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def isclassinstance(obj: Any) -> bool:
    """Return whether the object has a class."""
    return hasattr(obj, '__class__')


def is_a(obj: Any, entity_type: type) -> bool:
    """
    Return whether the object is an instance of the class.

    :raises RuntimeError: if the type is no class.
    """
    if not isclassinstance(obj):
        raise RuntimeError(f"obj '{obj}' is not a class instance")
    if not inspect.isclass(entity_type):
        raise RuntimeError(f"entity_type '{entity_type}' is not a class")
    return isinstance(obj, entity_type)


def is_a_subclass(obj: Any, entity_type: type) -> bool:
    """Return whether the object is an instance or a subclass of the class."""
    return is_a(obj, entity_type) or (inspect.isclass(obj) and issubclass(obj, entity_type))
