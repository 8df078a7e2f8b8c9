"""Checks of interface types."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.exceptions import NoTypeSupportImportedException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn
else:
    __getattr__ = getter_of(__name__)


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


def _refuse_type(kind: str, given: Any, example: str, others: str) -> NoReturn:
    # An instance has the type support of its class, and is of a wrong kind nevertheless.
    if not hasattr(type(given), '_TYPE_SUPPORT'):
        check_for_type_support(given)
    raise RuntimeError(
        f'The {kind} type provided ({given!r}) is not valid: pass a class such as {example}, '
        f'not a {others}')


def check_is_valid_msg_type(msg_type: Any) -> None:
    """
    Check that a class is a message.

    :raises RuntimeError: if it is a service or action.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_message_class(msg_type):
        _refuse_type('message', msg_type, 'std_msgs.msg.String', 'service or action')


def check_is_valid_srv_type(srv_type: Any) -> None:
    """
    Check that a class is a service.

    :raises RuntimeError: if it is a message or action.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_service_class(srv_type):
        _refuse_type('service', srv_type, 'std_srvs.srv.Empty', 'message or action')


def check_is_valid_action_type(action_type: Any) -> None:
    """
    Check that a class is an action.

    :raises RuntimeError: if it is a message or service.
    :raises AttributeError: if it is no interface.
    """
    if not _native.is_action_class(action_type):
        _refuse_type('action', action_type, 'example_interfaces.action.Fibonacci', 'message or service')
