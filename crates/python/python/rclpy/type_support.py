"""Checks of interface types."""

from __future__ import annotations

from pteros import _native
from rclpy.exceptions import NoTypeSupportImportedException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_for_type_support(msg_or_srv_type: Any) -> None:
    """
    Check that a class is a message, service or action.

    :raises AttributeError: if it is something else.
    :raises NoTypeSupportImportedException: if its type support cannot be imported.
    """
    if (_native.is_message_class(msg_or_srv_type) or _native.is_service_class(msg_or_srv_type)
            or _native.is_action_class(msg_or_srv_type)):
        return
    if not hasattr(type(msg_or_srv_type), '_TYPE_SUPPORT'):
        raise AttributeError(
            f'{msg_or_srv_type!r} is no ROS interface: it has no type support. '
            'Pass a class such as std_msgs.msg.String')
    raise NoTypeSupportImportedException()


def check_is_valid_msg_type(msg_type: Any) -> None:
    """
    Check that a class is a message.

    :raises RuntimeError: if it is something else.
    """
    if not _native.is_message_class(msg_type):
        raise RuntimeError(
            f'The message type provided ({msg_type!r}) is not valid: pass a message class, such '
            'as std_msgs.msg.String, not a service or action')


def check_is_valid_srv_type(srv_type: Any) -> None:
    """
    Check that a class is a service.

    :raises RuntimeError: if it is something else.
    """
    if not _native.is_service_class(srv_type):
        raise RuntimeError(
            f'The service type provided ({srv_type!r}) is not valid: pass a service class, such '
            'as std_srvs.srv.Empty, not a message or action')
