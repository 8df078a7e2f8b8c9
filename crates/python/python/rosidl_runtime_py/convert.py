"""Messages as YAML, CSV and dictionaries."""

from __future__ import annotations

import array
from collections import OrderedDict

from rosidl_runtime_py import yaml_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional


def _type_name(value_type: Any) -> str:
    if hasattr(value_type, 'namespaced_name'):
        return '/'.join(value_type.namespaced_name())
    typename = getattr(value_type, 'typename', None)
    if typename is not None:
        return typename
    # Strings have no name of their own in the parser's types.
    kind = type(value_type).__name__
    return 'wstring' if kind.endswith('WString') else 'string'


def _array_summary(value: Any, field_type: Any) -> str:
    name = _type_name(field_type.value_type)
    if type(field_type).__name__ == 'Array':
        return f'<array type: {name}[{field_type.size}]>'
    bound = getattr(field_type, 'maximum_size', None)
    if bound is not None:
        return f'<sequence type: {name}[{bound}], length: {len(value)}>'
    return f'<sequence type: {name}, length: {len(value)}>'


def _is_array_type(field_type: Any) -> bool:
    return field_type is not None and hasattr(field_type, 'value_type')


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple, array.array)):
        return True
    return hasattr(value, 'tolist') and value.ndim > 0


def message_to_yaml(
    msg: Any, *, truncate_length: Optional[int] = None, no_arr: bool = False,
    no_str: bool = False, flow_style: bool = False,
) -> str:
    """
    Return a message as YAML.

    :param truncate_length: Longest string, array and sequence; ``None`` stands for no limit.
    :param no_arr: Replace arrays and sequences by their type and length.
    :param no_str: Replace strings by their length.
    :param flow_style: Print it on one line, in braces.
    """
    values = message_to_ordereddict(
        msg, truncate_length=truncate_length, no_arr=no_arr, no_str=no_str)
    return yaml_text.block(values, flow_sequences=flow_style)


def message_to_csv(
    msg: Any, *, truncate_length: Optional[int] = None, no_arr: bool = False,
    no_str: bool = False,
) -> str:
    """
    Return the values of a message, separated by commas, without names.

    The parameters are those of :func:`message_to_yaml`.
    """
    def to_text(value: Any, field_type: Any = None) -> str:
        if _is_sequence(value):
            if no_arr and _is_array_type(field_type):
                return _array_summary(value, field_type)
            values = list(value)
            shown = values if truncate_length is None else values[:truncate_length]
            texts = [to_text(each) for each in shown]
            if len(shown) < len(values):
                texts.append('...')
            return _joined(texts)
        if isinstance(value, (dict,)):
            return ','.join(to_text(each) for each in value.values())
        if isinstance(value, (bytes, str)):
            if no_str and isinstance(value, str):
                return f'<string length: <{len(value)}>>'
            if truncate_length is not None and len(value) > truncate_length:
                dots = '...' if isinstance(value, str) else b'...'
                return str(value[:truncate_length] + dots)
            return str(value)
        if hasattr(value, 'get_fields_and_field_types'):
            return message_to_csv(
                value, truncate_length=truncate_length, no_arr=no_arr, no_str=no_str)
        return str(value)

    texts = []
    for name, field_type in zip(_field_names(msg), msg.SLOT_TYPES):
        texts.append(to_text(getattr(msg, name), field_type))
    return _joined(texts)


def _joined(texts: List[str]) -> str:
    """Return texts with commas between them; none follows empty texts at the start."""
    result = ''
    for text in texts:
        result += f',{text}' if result else text
    return result


def _field_names(msg: Any) -> List[str]:
    return list(msg.get_fields_and_field_types())


def message_to_ordereddict(
    msg: Any, *, truncate_length: Optional[int] = None, no_arr: bool = False,
    no_str: bool = False,
) -> OrderedDict:
    """
    Return the fields of a message by name, in order.

    The parameters are those of :func:`message_to_yaml`.
    """
    result: OrderedDict = OrderedDict()
    for name, field_type in zip(_field_names(msg), msg.SLOT_TYPES):
        result[name] = _convert_value(
            getattr(msg, name), field_type=field_type, truncate_length=truncate_length,
            no_arr=no_arr, no_str=no_str)
    return result


def _convert_value(
    value: Any, *, field_type: Any = None, truncate_length: Optional[int] = None,
    no_arr: bool = False, no_str: bool = False,
) -> Any:
    """Return a value with messages as dictionaries, bytes as strings and arrays as lists."""
    def convert(each: Any) -> Any:
        return _convert_value(
            each, truncate_length=truncate_length, no_arr=no_arr, no_str=no_str)

    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, bytes):
        text = ''.join(chr(byte) for byte in value)
        if truncate_length is not None and len(text) > truncate_length:
            return text[:truncate_length] + '...'
        return text
    if isinstance(value, str):
        if no_str:
            return f'<string length: <{len(value)}>>'
        if truncate_length is not None and len(value) > truncate_length:
            return value[:truncate_length] + '...'
        return value
    if isinstance(value, (int, float)):
        return value
    if hasattr(value, 'tolist') and not isinstance(value, array.array) and value.ndim == 0:
        # A scalar of numpy.
        return value.tolist()
    if isinstance(value, dict):
        return type(value)((key, convert(each)) for key, each in value.items())
    if hasattr(value, 'get_fields_and_field_types'):
        return message_to_ordereddict(
            value, truncate_length=truncate_length, no_arr=no_arr, no_str=no_str)
    is_tuple = isinstance(value, tuple)
    if is_tuple or _is_sequence(value):
        if no_arr and _is_array_type(field_type):
            return _array_summary(value, field_type)
        shown = value if truncate_length is None else value[:truncate_length]
        plain = shown.tolist() if hasattr(shown, 'tolist') else shown
        values = [convert(each) for each in plain]
        if len(shown) < len(value):
            values.append('...')
        return tuple(values) if is_tuple else values
    raise TypeError(f'cannot convert a value of type {type(value).__name__}: {value!r}')


def get_message_slot_types(msg: Any) -> OrderedDict:
    """Return the types of a message's fields by name: ``rosidl_parser`` definitions."""
    return OrderedDict(zip(_field_names(msg), msg.SLOT_TYPES))
