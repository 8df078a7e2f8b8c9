"""
Writes the specifications of `rosidl_adapter.parser` as IDL (OMG IDL 4.2).

The texts are those of ROS 2, byte for byte: other generators read them. A fixed-size array is a
`typedef` above its structure, constants are a module of their own, and comments, defaults and
units are annotations.
"""

from __future__ import annotations

import pathlib

from rosidl_adapter.parser import (
    parse_action_string, parse_message_string, parse_service_string,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Union

    from rosidl_adapter.parser import BaseType, Field, MessageSpecification, Type

_WORDS = {
    'bool': 'boolean', 'byte': 'octet', 'char': 'uint8', 'float32': 'float', 'float64': 'double',
    **{name: name for name in (
        'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64', 'string',
        'wstring')}}


def _message_parts(package: str, name: str, text: str) -> List[MessageSpecification]:
    return [parse_message_string(package, name, text)]


def _service_parts(package: str, name: str, text: str) -> List[MessageSpecification]:
    service = parse_service_string(package, name, text)
    return [service.request, service.response]


def _action_parts(package: str, name: str, text: str) -> List[MessageSpecification]:
    action = parse_action_string(package, name, text)
    return [action.goal, action.result, action.feedback]


KINDS = {'.msg': _message_parts, '.srv': _service_parts, '.action': _action_parts}
"""The readers of the definition files, by suffix."""


def convert(
    package_dir: pathlib.Path, package_name: str, input_file: pathlib.Path,
    output_dir: pathlib.Path,
) -> pathlib.Path:
    """Write the IDL file of a definition file into a folder, and return its path."""
    if not package_dir.is_absolute() or input_file.is_absolute():
        raise AssertionError(
            f'{package_dir} must be absolute, and {input_file} relative to it')
    source = package_dir / input_file
    output_file = output_dir / input_file.with_suffix('.idl').name
    print(f'Reading input file: {source}')
    parts = KINDS[input_file.suffix](
        package_name, input_file.stem, source.read_text(encoding='utf-8'))
    print(f'Writing output file: {output_file.absolute()}')
    # Other generators read it so.
    text = to_idl(package_name, input_file, parts).encode('iso-8859-1')
    output_dir.mkdir(parents=True, exist_ok=True)
    if not output_file.exists() or output_file.read_bytes() != text:
        output_file.write_bytes(text)
    return output_file


def to_idl(
    package_name: str, input_file: pathlib.PurePath, parts: List[MessageSpecification],
) -> str:
    """Return the text of the IDL file for the messages of one definition file."""
    kind = input_file.suffix[1:]
    fields = [field for part in parts for field in part.fields]
    includes = sorted({
        get_include_file(field.type) for field in fields if not field.type.is_primitive_type()})
    lines = [
        f'// generated from rosidl_adapter/resource/{kind}.idl.em',
        f'// with input from {package_name}/{input_file.as_posix()}',
        '// generated code does not contain a copyright notice',
        '',
        *(f'#include "{file}"' for file in includes),
        '',
        f'module {package_name} {{',
        f'  module {kind} {{',
        *(line for part in parts for line in _structure(part)),
        '  };',
        '};',
    ]
    return '\n'.join(lines) + '\n'


def _structure(message: MessageSpecification) -> Iterator[str]:
    for name, meaning in _typedefs(message.fields).items():
        yield f'    typedef {meaning} {name};'
    if message.constants:
        yield f'    module {message.msg_name}_Constants {{'
        for constant in message.constants:
            comment = list(_comment('      ', constant))
            if comment:
                # Its lines are one, unlike those of other comments.
                yield from (comment[0], ''.join(comment[1:]))
            idl_type = get_idl_type(constant.type)
            value = to_idl_literal(idl_type, constant.value)
            yield f'      const {idl_type} {constant.name} = {value};'
        yield '    };'
    yield from _comment('    ', message)
    yield f'    struct {message.msg_name} {{'
    if not message.fields:
        yield '      uint8 structure_needs_at_least_one_member;'
    for index, field in enumerate(message.fields):
        if index:
            yield ''
        yield from _field(field)
    yield '    };'


def _field(field: Field) -> Iterator[str]:
    yield from _comment('      ', field)
    idl_type = get_idl_type(field.type)
    if field.default_value is not None:
        yield f'      @default (value={to_idl_literal(idl_type, field.default_value)})'
    if 'unit' in field.annotations:
        yield f"      @unit (value={string_to_idl_string_literal(field.annotations['unit'])})"
    if field.type.is_fixed_size_array():
        idl_type = _identifier(idl_type)
    yield f'      {idl_type} {field.name};'


def _comment(indent: str, owner: Any) -> Iterator[str]:
    comments = owner.annotations.get('comment', [])
    if comments:
        yield f'{indent}@verbatim (language="comment", text='
        literals = [f'{indent}  {string_to_idl_string_literal(line)}' for line in comments]
        yield from (f'{line} "\\n"' for line in literals[:-1])
        yield f'{literals[-1]})'


def _typedefs(fields: List[Field]) -> Dict[str, str]:
    """Return the types that stand above a structure: arrays, and messages in them."""
    found: Dict[str, str] = {}
    for field in fields:
        if field.type.is_fixed_size_array():
            idl_type = get_idl_type(field.type)
            element = idl_type.split('[')[0]
            name = element.replace('::', '__')
            if name != element:
                found[name] = element
            found[f'{_identifier(idl_type)}[{field.type.array_size}]'] = name
    return found


def _identifier(idl_type: str) -> str:
    for text, replacement in (
            ('::', '__'), ('<', '__'), ('>', ''), ('[', '__'), (']', '')):
        idl_type = idl_type.replace(text, replacement)
    return idl_type


def get_include_file(base_type: BaseType) -> Union[str, None]:
    """Return the IDL file of a message, or None for another type."""
    if base_type.is_primitive_type():
        return None
    return f'{base_type.pkg_name}/msg/{base_type.type}.idl'


def get_idl_type(type_: Union[str, Type]) -> str:
    """Return the IDL of a type."""
    if isinstance(type_, str):
        return _WORDS[type_]
    if type_.is_primitive_type():
        text = _WORDS[type_.type]
        if type_.string_upper_bound is not None:
            text += f'<{type_.string_upper_bound}>'
    else:
        text = f'{type_.pkg_name}::msg::{type_.type}'
    if not type_.is_array:
        return text
    if type_.is_fixed_size_array():
        return f'{text}[{type_.array_size}]'
    return f'sequence<{text}, {type_.array_size}>' if type_.is_upper_bound else f'sequence<{text}>'


def to_idl_literal(idl_type: str, value: Any) -> Any:
    """Return the IDL of a value: that of an array is the text of a tuple."""
    if idl_type.endswith(']') or idl_type.startswith('sequence<'):
        text = repr(tuple(value)).replace('\\', r'\\').replace('"', r'\"')
        return f'"{text}"'
    if idl_type == 'boolean':
        return 'TRUE' if value else 'FALSE'
    if idl_type.startswith(('string', 'wstring')):
        return string_to_idl_string_literal(value)
    return value


def string_to_idl_string_literal(string: str) -> str:
    """Return a text in quotes, its escapes resolved."""
    text = string.encode().decode('unicode_escape').replace('"', r'\"')
    return f'"{text}"'
