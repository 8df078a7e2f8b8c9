"""YAML 1.1 documents, written without a YAML library."""

from __future__ import annotations

import math
import re

from launch.utilities.yaml_reader import read_plain_scalar, resolve_plain_scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_SPECIAL_START = '-?:,[]{}#&*!|>\'"%@`'
_WRITTEN_ESCAPES = {
    '\0': '\\0', '\a': '\\a', '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\v', '\f': '\\f',
    '\r': '\\r', '\x1b': '\\e', '"': '\\"', '\\': '\\\\'}


def _double_quoted(text: str) -> str:
    def written(character: str) -> str:
        if character in _WRITTEN_ESCAPES:
            return _WRITTEN_ESCAPES[character]
        if character.isprintable():
            return character
        number = ord(character)
        return f'\\u{number:04X}' if number < 0x10000 else f'\\U{number:08X}'

    return '"' + ''.join(written(each) for each in text) + '"'


def _is_date(text: str) -> bool:
    return re.match('[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}', text) is not None


def _written_text(text: str) -> str:
    if not text.isprintable():
        return _double_quoted(text)
    is_ambiguous = (
        not text or text != text.strip() or text[0] in _SPECIAL_START
        or not isinstance(resolve_plain_scalar(text), str)
        or not isinstance(read_plain_scalar(text, as_rcl=True), str)
        or text in ('=', '<<')
        or _is_date(text) or text.startswith(('...', '---'))
        or any(each in text for each in (': ', ' #', ', ')) or text.endswith(':')
        or any(each in ',[]{}' for each in text))
    return "'" + text.replace("'", "''") + "'" if is_ambiguous else text


def _written_scalar(value: Any) -> str:
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return '.nan'
        if math.isinf(value):
            return '.inf' if value > 0 else '-.inf'
        text = repr(float(value))
        # YAML 1.1 requires a point in a number with an exponent.
        return text.replace('e', '.0e') if 'e' in text and '.' not in text else text
    if isinstance(value, bytes):
        raise TypeError('bytes have no form in a parameter file')
    return _written_text(str(value))


def _written_flow(value: Any) -> str:
    if isinstance(value, dict):
        return '{' + ', '.join(
            f'{_written_scalar(key)}: {_written_flow(each)}' for key, each in value.items()) + '}'
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(_written_flow(each) for each in value) + ']'
    return _written_scalar(value)


def _written_lines(value: Dict[Any, Any], indent: str) -> List[str]:
    lines = []
    for key, each in value.items():
        if isinstance(each, dict) and each:
            lines.append(f'{indent}{_written_scalar(key)}:')
            lines.extend(_written_lines(each, indent + '  '))
        else:
            lines.append(f'{indent}{_written_scalar(key)}: {_written_flow(each)}')
    return lines


def dump_yaml(value: Any) -> str:
    """
    Return a value as a document: mappings as blocks, all else on one line.

    :raises TypeError: if bytes are in it.
    """
    if isinstance(value, dict) and value:
        return '\n'.join(_written_lines(value, '')) + '\n'
    return _written_flow(value) + '\n'
