"""Validation of topic names."""

from __future__ import annotations

from pteros import _native
from rclpy.exceptions import InvalidServiceNameException, InvalidTopicNameException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

TOPIC_SEPARATOR_STRING = '/'

def validate_topic_name(name: str, *, is_service: bool = False) -> Literal[True]:
    """
    Check a topic or service name, before its expansion.

    :param is_service: Raise the exception for services.
    :returns: ``True``.
    :raises InvalidTopicNameException: if it is invalid.
    :raises InvalidServiceNameException: if it is invalid and ``is_service``.
    """
    result = _native.validate_topic_name(name, is_service)
    if result is None:
        return True
    exception = InvalidServiceNameException if is_service else InvalidTopicNameException
    raise exception(name, *result)
