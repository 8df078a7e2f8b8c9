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


def _check_is_interface(given: Any) -> None:
    # An instance has the type support of its class, and is of a wrong kind nevertheless.
    if not hasattr(type(given), '_TYPE_SUPPORT'):
        check_for_type_support(given)


def check_is_valid_msg_type(msg_type: Any) -> None:
    """
    Check that a class is a message.

    :raises RuntimeError: if it is a service or action.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_message_class(msg_type):
        _check_is_interface(msg_type)
        raise RuntimeError(
            f'The message type provided ({msg_type!r}) is not valid: pass a message class, such '
            'as std_msgs.msg.String, not a service or action')


def check_is_valid_srv_type(srv_type: Any) -> None:
    """
    Check that a class is a service.

    :raises RuntimeError: if it is a message or action.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_service_class(srv_type):
        _check_is_interface(srv_type)
        raise RuntimeError(
            f'The service type provided ({srv_type!r}) is not valid: pass a service class, such '
            'as std_srvs.srv.Empty, not a message or action')


def check_is_valid_action_type(action_type: Any) -> None:
    """
    Check that a class is an action.

    :raises RuntimeError: if it is a message or service.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_action_class(action_type):
        _check_is_interface(action_type)
        raise RuntimeError(
            f'The action type provided ({action_type!r}) is not valid: pass an action class, such '
            'as example_interfaces.action.Fibonacci, not a message or service')
