"""Classes and types of interfaces by their names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


def get_interface(identifier: str) -> Any:
    """
    Return the class of ``package/kind/Name``, where the kind is msg, srv or action.

    :raises ValueError: if the identifier is malformed.
    """
    return _get(get_namespaced_type(identifier))


def get_message(identifier: str) -> Any:
    """Return the class of the message ``package/msg/Name`` or ``package/Name``."""
    interface = _get(get_message_namespaced_type(identifier))
    if not is_message(interface):
        raise ValueError(f"Expected the full name of a message, got '{identifier}'")
    return interface


def get_service(identifier: str) -> Any:
    """Return the class of the service ``package/srv/Name`` or ``package/Name``."""
    interface = _get(get_service_namespaced_type(identifier))
    if not is_service(interface):
        raise ValueError(f"Expected the full name of a service, got '{identifier}'")
    return interface


def get_action(identifier: str) -> Any:
    """Return the class of the action ``package/action/Name`` or ``package/Name``."""
    interface = _get(get_action_namespaced_type(identifier))
    if not is_action(interface):
        raise ValueError(f"Expected the full name of an action, got '{identifier}'")
    return interface


def _get(namespaced_type: Any) -> Any:
    from rosidl_runtime_py.import_message import import_message_from_namespaced_type
    return import_message_from_namespaced_type(namespaced_type)


def get_namespaced_type(identifier: str) -> Any:
    """Return the ``rosidl_parser`` type of ``package/kind/Name``."""
    return _get_namespaced_type(identifier)


def get_message_namespaced_type(identifier: str) -> Any:
    """Return the type of the message ``package/msg/Name`` or ``package/Name``."""
    return _get_namespaced_type(identifier, default_namespace='msg')


def get_service_namespaced_type(identifier: str) -> Any:
    """Return the type of the service ``package/srv/Name`` or ``package/Name``."""
    return _get_namespaced_type(identifier, default_namespace='srv')


def get_action_namespaced_type(identifier: str) -> Any:
    """Return the type of the action ``package/action/Name`` or ``package/Name``."""
    return _get_namespaced_type(identifier, default_namespace='action')


def is_message(interface: Any) -> bool:
    """Return whether a class is a message."""
    return hasattr(interface, 'get_fields_and_field_types')


def is_service(interface: Any) -> bool:
    """Return whether a class is a service."""
    return hasattr(interface, 'Request') and hasattr(interface, 'Response')


def is_action(interface: Any) -> bool:
    """Return whether a class is an action."""
    return all(hasattr(interface, part) for part in ('Goal', 'Result', 'Feedback'))


def _get_namespaced_type(identifier: str, *, default_namespace: Optional[str] = None) -> Any:
    from rosidl_parser.definition import NamespacedType
    parts = identifier.split('/')
    if len(parts) == 2 and default_namespace is not None:
        parts.insert(1, default_namespace)
    if len(parts) < 3 or not all(parts):
        raise ValueError(
            f"Invalid name '{identifier}'. Expected three parts separated by '/', such as "
            'std_msgs/msg/String')
    return NamespacedType(parts[:-1], parts[-1])


def _part_module(message_type: Any) -> str:
    """Return the module of a part, such as ``Fibonacci_FeedbackMessage``."""
    import re
    owner = message_type.name
    for suffix in (
            '_SendGoal_Request', '_SendGoal_Response', '_GetResult_Request',
            '_GetResult_Response', '_SendGoal_Event', '_GetResult_Event', '_FeedbackMessage',
            '_SendGoal', '_GetResult', '_Goal', '_Result', '_Feedback', '_Request', '_Response',
            '_Event'):
        if owner.endswith(suffix):
            owner = owner[:-len(suffix)]
            break
    name = re.sub('(.)([A-Z][a-z]+)', r'\1_\2', owner)
    name = re.sub('([a-z0-9])([A-Z])', r'\1_\2', name).lower()
    return '.'.join(message_type.namespaces) + '._' + name
