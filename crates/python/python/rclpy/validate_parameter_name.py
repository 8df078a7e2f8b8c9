"""Validation of parameter names."""

from __future__ import annotations

from rclpy.exceptions import InvalidParameterException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def validate_parameter_name(name: str) -> Literal[True]:
    """
    Check a parameter name.

    :returns: ``True``.
    :raises InvalidParameterException: if it is empty.
    """
    if not name:
        raise InvalidParameterException(name)
    return True
