"""Serialization of messages as CDR with its header."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    __getattr__ = getter_of(__name__)


def serialize_message(message: Any) -> bytes:
    """
    Serialize a message.

    :raises TypeError: if it is no message, or a field has a wrong type.
    """
    return _native.serialize_message(message)


def deserialize_message(serialized_message: bytes, message_type: Any) -> Any:
    """
    Create a message of a type from its serialized form.

    :raises RCLError: if the bytes are no message of that type.
    """
    return _native.deserialize_message(serialized_message, message_type)
