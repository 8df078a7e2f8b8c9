"""Setting the fields of a message from plain values."""

from __future__ import annotations

from functools import partial

from rosidl_runtime_py.convert import get_message_slot_types
from rosidl_runtime_py.import_message import import_message_from_namespaced_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


def set_message_fields(
    msg: Any, values: Dict[str, Any], expand_header_auto: bool = False,
    expand_time_now: bool = False,
) -> List[Any]:
    """
    Set fields of a message.

    :param msg: The message.
    :param values: Values by field: plain values, dictionaries for messages, or messages.
    :param expand_header_auto: Let ``'auto'`` stand for a header with the time of publication.
    :param expand_time_now: Let ``'now'`` stand for the time of publication.
    :returns: functions that set the times, to be called with one.
    :raises AttributeError: if a field does not exist.
    :raises TypeError: if ``values``, or a value of a message field, is no dictionary.
    :raises ValueError: if a value cannot be converted to the field's type.
    """
    time_setters: List[Any] = []
    _set_fields(msg, values, expand_header_auto, expand_time_now, time_setters)
    return time_setters


def _set_fields(
    msg: Any, values: Any, expand_header_auto: bool, expand_time_now: bool,
    time_setters: List[Any],
) -> None:
    try:
        items = list(values.items())
    except AttributeError:
        raise TypeError(
            f"Value '{values}' is expected to be a dictionary but is a "
            f'{type(values).__name__}') from None
    slot_types = get_message_slot_types(msg)
    for name, value in items:
        field = getattr(msg, name)
        field_type = type(field)
        slot_type = slot_types.get(name)
        if _is_byte_array(field, value):
            converted = value
        elif field_type is bytes:
            converted = value if isinstance(value, bytes) else bytes([int(value)]) \
                if isinstance(value, int) else str(value).encode('latin-1')
        elif hasattr(slot_type, 'value_type'):
            converted = _convert_elements(
                field, value, slot_type, expand_header_auto, expand_time_now, time_setters)
        elif isinstance(value, field_type):
            converted = value
        elif value == 'auto' and expand_header_auto and _is(slot_type, 'std_msgs', 'Header'):
            converted = field_type()
            time_setters.append(partial(setattr, converted, 'stamp'))
        elif value == 'now' and expand_time_now and _is(slot_type, 'builtin_interfaces', 'Time'):
            converted = field_type()
            time_setters.append(partial(setattr, msg, name))
        elif hasattr(field, 'get_fields_and_field_types'):
            # The fields that are not given keep their values.
            converted = field
            _set_fields(converted, value, expand_header_auto, expand_time_now, time_setters)
        else:
            converted = field_type(value)
        setattr(msg, name, converted)


def _is(slot_type: Any, package: str, name: str) -> bool:
    return (tuple(getattr(slot_type, 'namespaces', ())) == (package, 'msg')
            and getattr(slot_type, 'name', None) == name)


def _is_byte_array(field: Any, value: Any) -> bool:
    return not isinstance(field, (bytes, str)) and isinstance(value, (bytes, bytearray))


def _convert_elements(
    field: Any, value: Any, slot_type: Any, expand_header_auto: bool, expand_time_now: bool,
    time_setters: List[Any],
) -> Any:
    element_type = slot_type.value_type
    if hasattr(element_type, 'namespaced_name'):
        message_class = import_message_from_namespaced_type(element_type)
        elements = []
        for each in value:
            if isinstance(each, message_class):
                elements.append(each)
                continue
            element = message_class()
            _set_fields(element, each, expand_header_auto, expand_time_now, time_setters)
            elements.append(element)
        return elements
    if getattr(element_type, 'typename', None) == 'octet':
        return [each if isinstance(each, bytes) else bytes([each]) for each in value]
    if isinstance(value, type(field)):
        return value
    if hasattr(field, 'typecode'):
        return type(field)(field.typecode, value)
    return list(value)
