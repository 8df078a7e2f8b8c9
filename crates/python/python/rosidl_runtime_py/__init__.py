"""Functions on interface types and messages at run time."""

from rosidl_runtime_py.convert import (
    get_message_slot_types, message_to_csv, message_to_ordereddict, message_to_yaml,
)
from rosidl_runtime_py.get_interfaces import (
    get_action_interfaces, get_interface_packages, get_interface_path, get_interfaces,
    get_message_interfaces, get_service_interfaces,
)
from rosidl_runtime_py.import_message import import_message_from_namespaced_type
from rosidl_runtime_py.set_message import set_message_fields

__all__ = [
    'get_action_interfaces', 'get_interface_packages', 'get_interface_path', 'get_interfaces',
    'get_message_interfaces', 'get_message_slot_types', 'get_service_interfaces',
    'import_message_from_namespaced_type', 'message_to_csv', 'message_to_ordereddict',
    'message_to_yaml', 'set_message_fields',
]
