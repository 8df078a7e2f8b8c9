"""
Text with substitutions, as launch files have it: ``$(name argument 'other argument')``.

A backslash escapes the character behind it. In arguments, a part in quotes may have spaces,
and substitutions may lie in each other. The native module reads it, as for ``pteros launch``.
"""

from __future__ import annotations

import re

from launch.frontend.expose import instantiate_substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple

    from launch.substitution import Substitution
    from launch.utilities.type_utils import StrSomeValueType

class InvalidSubstitutionError(ValueError):
    """A text whose substitutions cannot be read."""


def replace_escaped_characters(data: str) -> str:
    """Return the text with escaped characters in place of their escapes."""
    return re.sub(r'\\(.)', r'\1', data)


def _substitution(part: Any) -> Substitution:
    from launch.substitutions.text_substitution import TextSubstitution
    if isinstance(part, str):
        return TextSubstitution(text=part)
    name, arguments = part
    return instantiate_substitution(
        name, [[_substitution(each) for each in argument] for argument in arguments])


def parse_substitution(string_value: str) -> List[Substitution]:
    """
    Return the substitutions of a text; text between them is a TextSubstitution.

    :raises InvalidSubstitutionError: if they cannot be read.
    :raises RuntimeError: if there is no such substitution.
    """
    from pteros import _native
    try:
        parts = _native.parse_template(string_value)
    except ValueError as error:
        raise InvalidSubstitutionError(f'{error} of {string_value!r}') from None
    return [_substitution(part) for part in parts or ['']]


def _parse_if_text(value: Any) -> Tuple[type, Any]:
    """Return the type that is known before the launch, and the value."""
    from launch.substitutions.text_substitution import TextSubstitution
    if not isinstance(value, str):
        return type(value), value
    parts = parse_substitution(value)
    if len(parts) == 1 and isinstance(parts[0], TextSubstitution):
        return str, parts[0].text
    return type(None), parts


def parse_if_substitutions(value: StrSomeValueType) -> Any:
    """
    Return the value with substitutions in place of text that has some.

    :raises ValueError: if the values of a list have several types.
    """
    if not isinstance(value, list):
        return _parse_if_text(value)[1]
    parsed = [_parse_if_text(each) for each in value]
    if len({kind for kind, _ in parsed} - {type(None)}) > 1:
        raise ValueError('The result is a non-uniform list')
    return [each for _, each in parsed]
