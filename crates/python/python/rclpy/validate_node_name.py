"""Validation of node names."""

from __future__ import annotations

from pteros import _native
from rclpy.exceptions import InvalidNodeNameException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def validate_node_name(node_name: str) -> Literal[True]:
    """
    Check a node name.

    :returns: ``True``.
    :raises InvalidNodeNameException: if it is invalid.
    """
    result = _native.validate_node_name(node_name)
    if result is None:
        return True
    raise InvalidNodeNameException(node_name, *result)
