"""YAML as text: the subset that messages need, without a YAML library."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

# Plain scalars that YAML 1.1 or 1.2 would read as something other than a string.
_NOT_A_STRING = re.compile(
    r'''(?:~|null|true|false|yes|no|on|off|y|n|=|<<)?
    |[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[0-9][0-9_]*(?::[0-5]?[0-9])*)
    |[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]*(?:e[-+]?[0-9]+)?
    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*
    |[-+]?\.inf|\.nan
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*''', re.IGNORECASE | re.VERBOSE)
_SPECIAL_START = '-?:,[]{}#&*!|>\'"%@`'
_ESCAPES = {
    '\0': '\\0', '\a': '\\a', '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\v', '\f': '\\f',
    '\r': '\\r', '\x1b': '\\e', '"': '\\"', '\\': '\\\\'}


def _quoted(text: str) -> str:
    parts = []
    for character in text:
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif character.isprintable():
            parts.append(character)
        elif ord(character) < 0x100:
            parts.append(f'\\x{ord(character):02X}')
        elif ord(character) < 0x10000:
            parts.append(f'\\u{ord(character):04X}')
        else:
            parts.append(f'\\U{ord(character):08X}')
    return '"' + ''.join(parts) + '"'


def string(text: str, flow: bool = False) -> str:
    """Return a string as a scalar: plain if it can be, else quoted."""
    if not text.isprintable():
        return _quoted(text)
    ambiguous = (
        not text or text != text.strip() or _NOT_A_STRING.fullmatch(text) is not None
        or ': ' in text or ' #' in text or text.endswith(':')
        or text[0] in _SPECIAL_START or text.startswith('...') or (flow and any(each in ',[]{}' for each in text)))
    if ambiguous:
        return "'" + text.replace("'", "''") + "'"
    return text


def scalar(value: Any, flow: bool = False) -> str:
    """Return a scalar as text."""
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, float):
        if math.isnan(value):
            return '.nan'
        if math.isinf(value):
            return '.inf' if value > 0 else '-.inf'
        text = repr(value).lower()
        # YAML 1.1 requires a point in a number with an exponent.
        return text.replace('e', '.0e', 1) if '.' not in text and 'e' in text else text
    if isinstance(value, int):
        return str(int(value))
    return string(str(value), flow)


def _key(name: Any) -> str:
    # The fields y and n are written as PyYAML does, which reads them as strings.
    return name if name in ('y', 'n') else scalar(name, True)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def flow(value: Any) -> str:
    """Return a value in flow style, on one line."""
    if _is_mapping(value):
        return '{' + ', '.join(
            f'{_key(key)}: {flow(each)}' for key, each in value.items()) + '}'
    if _is_sequence(value):
        return '[' + ', '.join(flow(each) for each in value) + ']'
    return scalar(value, True)


def block(value: Any, flow_sequences: bool = False) -> str:
    """
    Return a value in block style, one entry a line.

    :param flow_sequences: Write each sequence in flow style.
    """
    if _is_inline(value, flow_sequences):
        return _inline(value) + '\n'
    lines: List[str] = []
    _block_lines(value, '', lines, flow_sequences)
    return '\n'.join(lines) + '\n'


def _is_inline(value: Any, flow_sequences: bool) -> bool:
    return not _is_collection(value) or not value or (flow_sequences and _is_sequence(value))


def _is_collection(value: Any) -> bool:
    return _is_mapping(value) or _is_sequence(value)


def _inline(value: Any) -> str:
    """Return a scalar, or a collection in flow style."""
    return flow(value) if _is_collection(value) else scalar(value)


def _block_lines(value: Any, indent: str, lines: List[str], flow_sequences: bool) -> None:
    if _is_mapping(value):
        for key, each in value.items():
            start = f'{indent}{_key(key)}:'
            if _is_inline(each, flow_sequences):
                lines.append(f'{start} {_inline(each)}')
                continue
            lines.append(start)
            # A sequence below a key is not indented.
            inner_indent = indent if _is_sequence(each) else indent + '  '
            _block_lines(each, inner_indent, lines, flow_sequences)
        return
    for each in value:
        if _is_inline(each, flow_sequences):
            lines.append(f'{indent}- {_inline(each)}')
            continue
        inner: List[str] = []
        _block_lines(each, indent + '  ', inner, flow_sequences)
        inner[0] = f'{indent}- ' + inner[0][len(indent) + 2:]
        lines.extend(inner)
