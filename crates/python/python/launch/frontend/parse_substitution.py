"""
Text with substitutions, as launch files have it: ``$(name argument 'other argument')``.

A backslash escapes the character behind it. In arguments, a part in quotes may have spaces,
and substitutions may lie in each other.
"""

from __future__ import annotations

import re

from launch.frontend.expose import instantiate_substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple

    from launch.substitution import Substitution
    from launch.utilities.type_utils import StrSomeValueType

DEPTH_MAX = 50
"""The deepest nesting of substitutions."""

_IDENTIFIER = re.compile('[A-Za-z][A-Za-z0-9_-]*')


class InvalidSubstitutionError(ValueError):
    """A text whose substitutions cannot be read."""


def replace_escaped_characters(data: str) -> str:
    """Return the text with escaped characters in place of their escapes."""
    return re.sub(r'\\(.)', r'\1', data)


class _Parser:
    """Recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def error(self, reason: str) -> InvalidSubstitutionError:
        return InvalidSubstitutionError(
            f'{reason} at column {self.position + 1} of {self.text!r}')

    def is_substitution(self) -> bool:
        # As in ROS 2, a backslash in front makes it text, even one that is escaped itself.
        return (
            self.text.startswith('$(', self.position)
            and self.text[self.position - 1:self.position] != '\\')

    def template(self) -> List[Substitution]:
        """Read the whole text."""
        parts: List[Substitution] = []
        while self.position < len(self.text):
            parts.append(self.substitution() if self.is_substitution() else self.text_until(''))
        return parts

    def text_until(self, stops: str) -> Substitution:
        """Read text up to a substitution, or a character that ends it."""
        from launch.substitutions.text_substitution import TextSubstitution
        start = self.position
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '\\' and self.position + 1 < len(self.text):
                self.position += 2
                continue
            if character in stops or self.is_substitution():
                break
            self.position += 1
        return TextSubstitution(
            text=replace_escaped_characters(self.text[start:self.position]))

    def substitution(self, quote: str = '') -> Substitution:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.error(f'more than {DEPTH_MAX} substitutions lie in each other')
        self.position += 2
        name = _IDENTIFIER.match(self.text, self.position)
        if name is None:
            raise self.error('a substitution has no name')
        self.position = name.end()
        arguments = []
        while self.peek() == ' ':
            self.position += 1
            argument = self.argument(quote)
            if argument is not None:
                arguments.append(argument)
        if self.peek() != ')':
            raise self.error(f"')' of $({name[0]} …) is missing")
        self.position += 1
        self.depth -= 1
        return instantiate_substitution(name[0], arguments)

    def peek(self) -> str:
        return self.text[self.position:self.position + 1]

    def argument(self, quote: str) -> Optional[List[Substitution]]:
        """Read one argument; ``None`` if further spaces or the end follow."""
        if self.peek() in (' ', ')', ''):
            return None
        if not quote and self.peek() in ("'", '"'):
            own = self.peek()
            self.position += 1
            parts = self.parts(own, own)
            if self.peek() != own:
                raise self.error(f'the closing {own} is missing')
            self.position += 1
            if self.peek() not in (' ', ')', ''):
                raise self.error('something follows a quoted argument')
            return parts
        return self.parts(quote, ' ()' + (quote or '\'"'))

    def parts(self, quote: str, stops: str) -> List[Substitution]:
        parts: List[Substitution] = []
        while self.position < len(self.text):
            if self.is_substitution():
                parts.append(self.substitution(quote))
            elif self.peek() in stops:
                break
            else:
                parts.append(self.text_until(stops))
        return parts


def parse_substitution(string_value: str) -> List[Substitution]:
    """
    Return the substitutions of a text; text between them is a TextSubstitution.

    :raises InvalidSubstitutionError: if they cannot be read.
    :raises RuntimeError: if there is no such substitution.
    """
    from launch.substitutions.text_substitution import TextSubstitution
    if not string_value:
        return [TextSubstitution(text=string_value)]
    return _Parser(string_value).template()


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
