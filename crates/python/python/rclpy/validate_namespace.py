"""Validation of node namespaces."""

from __future__ import annotations

from pteros import _native
from rclpy.exceptions import InvalidNamespaceException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def validate_namespace(namespace: str) -> Literal[True]:
    """
    Check a node namespace.

    :returns: ``True``.
    :raises InvalidNamespaceException: if it is invalid.
    """
    result = _native.validate_namespace(namespace)
    if result is None:
        return True
    raise InvalidNamespaceException(namespace, *result)
