"""
YAML 1.1 documents, read without a YAML library.

The reader takes block and flow collections, all styles of scalars, anchors, aliases and merge
keys, and gives plain scalars the types that YAML 1.1 gives them. It refuses other tags than
``!!str``, ``!!int``, ``!!float``, ``!!bool``, ``!!null``, ``!!seq`` and ``!!map``, and
several documents in one text. Dates stay text.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

DEPTH_MAX = 100
"""The deepest nesting that is read."""


class YamlError(ValueError):
    """A text that is not valid YAML; it names line and column."""


# --- scalars --------------------------------------------------------------------------------

_NULL = frozenset(('', '~', 'null', 'Null', 'NULL'))


def resolve_plain_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes, by the typing rule of the native module."""
    return None if text in _NULL else read_plain_scalar(text)


def read_plain_scalar(text: str, as_rcl: bool = False) -> Any:
    """Return the value by YAML 1.1, or by rcl's parser; the empty text is itself."""
    from pteros import _native
    return _native.read_plain_scalar(text, as_rcl)


def _tagged(kind: type) -> Any:
    def read(text: str) -> Any:
        value = read_plain_scalar(text)
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        return kind(text)

    return read


_TAGGED = {
    'str': str, 'int': _tagged(int), 'float': _tagged(float), 'null': lambda text: None,
    'bool': lambda text: read_plain_scalar(text) is True,
}
_ESCAPES = {
    '0': '\0', 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f',
    'r': '\r', 'e': '\x1b', ' ': ' ', '"': '"', '\\': '\\', '/': '/', 'N': '\x85',
    '_': '\xa0', 'L': '\u2028', 'P': '\u2029'}
_HEXADECIMAL_ESCAPES = {'x': 2, 'u': 4, 'U': 8}


# --- reader ---------------------------------------------------------------------------------

_NAME = re.compile(r'[^\s,\[\]{}]+')
_BLOCK_HEADER = re.compile(r'[|>](?:([-+])?([1-9])?|([1-9])([-+]))[ \t]*(?:[ \t]#.*)?$')
_MISSING = object()


class _Reader:
    """Recursive descent over the characters of one document."""

    def __init__(self, text: str) -> None:
        self.text = text.replace('\r\n', '\n').replace('\r', '\n')
        if self.text.startswith('\ufeff'):
            self.text = self.text[1:]
        self.position = 0
        self.depth = 0
        self.anchors: Dict[str, Any] = {}

    # Positions.

    def error(self, reason: str, position: Optional[int] = None) -> YamlError:
        position = self.position if position is None else position
        line = self.text.count('\n', 0, position) + 1
        column = position - (self.text.rfind('\n', 0, position) + 1) + 1
        return YamlError(f'line {line}, column {column}: {reason}')

    def peek(self, length: int = 1) -> str:
        return self.text[self.position:self.position + length]

    def at(self, offset: int) -> str:
        index = self.position + offset
        return self.text[index] if index < len(self.text) else ''

    def column(self) -> int:
        return self.position - (self.text.rfind('\n', 0, self.position) + 1)

    def is_at_line_start(self) -> bool:
        start = self.text.rfind('\n', 0, self.position) + 1
        return not self.text[start:self.position].strip(' ')

    def is_document_marker(self) -> bool:
        marker = self.peek(3)
        return marker in ('---', '...') and self.column() == 0 and self.at(3) in (
            '', ' ', '\t', '\n')

    def is_end(self) -> bool:
        return self.position >= len(self.text) or self.is_document_marker()

    def skip_blanks(self) -> None:
        """Skip spaces and a comment up to the end of the line."""
        start = self.position
        while self.peek() in (' ', '\t') and self.peek():
            self.position += 1
        if self.peek() == '#' and (
                self.position > start or self.column() == 0
                or self.text[self.position - 1] == '\n'):
            end = self.text.find('\n', self.position)
            self.position = len(self.text) if end < 0 else end

    def skip_lines(self) -> None:
        """Skip blanks, comments and line ends."""
        while True:
            self.skip_blanks()
            if self.peek() != '\n':
                return
            self.position += 1

    # Nodes.

    def document(self) -> Any:
        self.skip_lines()
        while self.peek() == '%' and self.column() == 0:
            end = self.text.find('\n', self.position)
            self.position = len(self.text) if end < 0 else end
            self.skip_lines()
        if self.peek(3) == '---' and self.is_document_marker():
            self.position += 3
        value = self.block_node(-1)
        self.skip_lines()
        if self.peek(3) == '...' and self.is_document_marker():
            self.position += 3
            self.skip_lines()
        if self.position < len(self.text):
            if self.is_document_marker():
                raise self.error('there is a second document; only one is read')
            raise self.error('this does not belong to the document; check its indentation')
        return value

    def enter(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.error(f'more than {DEPTH_MAX} collections lie in each other')

    def properties(self) -> Tuple[Optional[str], Optional[str]]:
        """Read an anchor and a tag, in any order."""
        anchor = tag = None
        while self.peek() in ('&', '!') and self.peek():
            kind = self.peek()
            if kind == '&':
                self.position += 1
                name = _NAME.match(self.text, self.position)
                if name is None:
                    raise self.error('an anchor has no name')
                anchor = name[0]
                self.position = name.end()
            else:
                name = _NAME.match(self.text, self.position)
                tag = name[0]
                for start in ('!!', '!<tag:yaml.org,2002:'):
                    if tag.startswith(start):
                        tag = tag[len(start):].rstrip('>')
                        break
                if tag not in (*_TAGGED, 'seq', 'map', '!'):
                    raise self.error(f"the tag '{name[0]}' is not supported")
                self.position = name.end()
            self.skip_blanks()
        return anchor, tag

    def alias(self) -> Any:
        name = _NAME.match(self.text, self.position + 1)
        if name is None or name[0] not in self.anchors:
            raise self.error('an alias has no anchor in front of it')
        self.position = name.end()
        return self.anchors[name[0]]

    def block_node(self, indent: int, is_value: bool = False) -> Any:
        """
        Read a node that is deeper than ``indent``; ``None`` if there is none.

        A sequence that is the value of a mapping may have the mapping's indentation.
        """
        self.enter()
        self.skip_blanks()
        anchor, tag = self.properties()
        was_inline = self.peek() not in ('\n', '')
        if not was_inline:
            self.skip_lines()
            column = self.column()
            is_sequence = self.peek() == '-' and self.at(1) in (' ', '\n', '\t', '')
            if self.is_end() or column < indent or (
                    column == indent and not (is_value and is_sequence)):
                self.depth -= 1
                return self.finish('', anchor, tag, True)
            if anchor is None and tag is None:
                anchor, tag = self.properties()
                if self.peek() in ('\n', ''):
                    self.skip_lines()
        value, is_plain = self.content(indent, is_value and was_inline)
        self.depth -= 1
        return self.finish(value, anchor, tag, is_plain)

    def finish(self, value: Any, anchor: Optional[str], tag: Optional[str], is_plain: bool) -> Any:
        """Give a node its type, and remember its anchor."""
        if tag in _TAGGED and isinstance(value, str):
            try:
                value = _TAGGED[tag](value)
            except ValueError:
                raise self.error(f"'{value}' is no !!{tag}") from None
        elif is_plain and isinstance(value, str) and tag != '!':
            value = resolve_plain_scalar(value)
        if anchor is not None:
            self.anchors[anchor] = value
        return value

    def content(self, indent: int, is_inline_value: bool) -> Tuple[Any, bool]:
        """Read a node without its properties; and whether it is a plain scalar."""
        character = self.peek()
        if character == '-' and self.at(1) in (' ', '\n', '\t', ''):
            if is_inline_value:
                raise self.error('a sequence begins on the line of its key; begin a new line')
            return self.block_sequence(self.column()), False
        if character == '?' and self.at(1) in (' ', '\n', ''):
            return self.block_mapping(self.column(), _MISSING), False
        if character in ('|', '>'):
            return self.block_scalar(indent), False
        start, column = self.position, self.column()
        is_key_possible = not is_inline_value
        if character == '*':
            value, is_plain = self.alias(), False
        elif character in ('"', "'"):
            value, is_plain = self.quoted(), False
        elif character in ('[', '{'):
            value, is_plain = self.flow_collection(), False
        else:
            key_end = self.plain_key_end() if is_key_possible else None
            if key_end is None:
                return self.plain_scalar(indent), True
            value, is_plain = self.text[start:key_end].rstrip(), True
            self.position = key_end
        if is_key_possible and self.is_key_here(start):
            key = resolve_plain_scalar(value) if is_plain else value
            self.position = self.colon_position()
            return self.block_mapping(column, key), False
        if not is_plain:
            self.expect_line_end()
        return value, is_plain

    def expect_line_end(self) -> None:
        self.skip_blanks()
        if self.peek() not in ('\n', ''):
            raise self.error('something follows a value on its line')

    def colon_position(self) -> int:
        position = self.position
        while position < len(self.text) and self.text[position] in ' \t':
            position += 1
        return position

    def is_key_here(self, start: int) -> bool:
        """Return whether a colon follows that makes what was read a key."""
        position = self.colon_position()
        if '\n' in self.text[start:position]:
            return False
        after = self.text[position + 1:position + 2]
        return self.text[position:position + 1] == ':' and after in ('', ' ', '\t', '\n')

    def plain_key_end(self) -> Optional[int]:
        """Return where a plain key ends, or ``None`` if the line has none."""
        end = self.text.find('\n', self.position)
        line = self.text[self.position:len(self.text) if end < 0 else end]
        for index, character in enumerate(line):
            if character == '#' and index and line[index - 1] in ' \t':
                return None
            if character == ':' and line[index + 1:index + 2] in ('', ' ', '\t'):
                return self.position + index
        return None

    def block_sequence(self, column: int) -> List[Any]:
        items = []
        while True:
            self.position += 1
            items.append(self.block_node(column))
            self.skip_lines()
            is_item = self.peek() == '-' and self.at(1) in (' ', '\n', '\t', '')
            if self.is_end() or self.column() != column or not is_item:
                self.check_dedent(column)
                return items

    def check_dedent(self, column: int) -> None:
        if not self.is_end() and self.column() > column:
            raise self.error('the indentation fits nothing above it')

    def block_mapping(self, column: int, key: Any) -> Dict[Any, Any]:
        """Read a mapping; the position is at the colon of its first key."""
        items: Dict[Any, Any] = {}
        merges: List[Any] = []
        while True:
            if key is _MISSING:
                self.position += 1
                key = self.block_node(column)
                self.skip_lines()
                if self.peek() == ':' and self.column() == column:
                    self.position += 1
                    value = self.block_node(column, True)
                else:
                    value = None
            else:
                self.position += 1
                value = self.block_node(column, True)
            self.store(items, merges, key, value)
            self.skip_lines()
            if self.is_end() or self.column() != column:
                self.check_dedent(column)
                break
            key = self.next_key(column)
            if key is self:
                break
        return self.merged(items, merges)

    def next_key(self, column: int) -> Any:
        """Read the next key of a block mapping; this reader itself if there is none."""
        character = self.peek()
        if character == '-' and self.at(1) in (' ', '\n', '\t', ''):
            return self
        if character == '?' and self.at(1) in (' ', '\n', ''):
            return _MISSING
        start = self.position
        anchor, tag = self.properties()
        character = self.peek()
        is_plain = False
        if character == '*':
            key = self.alias()
        elif character in ('"', "'"):
            key = self.quoted()
        elif character in ('[', '{'):
            key = self.flow_collection()
        else:
            end = self.plain_key_end()
            if end is None:
                raise self.error("a mapping goes on here, but ':' is missing")
            key, is_plain = self.text[self.position:end].rstrip(), True
            self.position = end
        if not self.is_key_here(start):
            raise self.error("a mapping goes on here, but ':' is missing")
        self.position = self.colon_position()
        return self.finish(key, anchor, tag, is_plain)

    def store(self, items: Dict[Any, Any], merges: List[Any], key: Any, value: Any) -> None:
        if key == '<<':
            merges.append(value)
            return
        try:
            items[key] = value
        except TypeError:
            raise self.error('a collection cannot be a key') from None

    def merged(self, items: Dict[Any, Any], merges: List[Any]) -> Dict[Any, Any]:
        if not merges:
            return items
        result: Dict[Any, Any] = {}
        for merge in merges:
            for each in merge if isinstance(merge, list) else [merge]:
                if not isinstance(each, dict):
                    raise self.error("'<<' merges mappings only")
                for key, value in each.items():
                    result.setdefault(key, value)
        result.update(items)
        return result

    # Scalars.

    def plain_scalar(self, indent: int) -> str:
        """Read a plain scalar of a block, which may go on over lines that are deeper."""
        character = self.peek()
        if character in (',', ']', '}', '%', '@', '`', '&', '*', '!', '#') and character:
            raise self.error(f"a scalar cannot begin with '{character}'; quote it")
        parts = [self.plain_line()]
        while True:
            before = self.position
            self.skip_blanks()
            if self.text[before:self.position].strip():
                break  # a comment
            if self.peek() != '\n':
                break
            empty_lines = -1
            while self.peek() == '\n':
                self.position += 1
                empty_lines += 1
                while self.peek() == ' ':
                    self.position += 1
            if self.is_end() or self.peek() == '#' or self.column() <= indent:
                self.position = before
                break
            if self.plain_key_end() is not None:
                raise self.error('a key follows a scalar on a deeper line')
            parts.append('\n' * empty_lines if empty_lines else ' ')
            parts.append(self.plain_line())
        return ''.join(parts)

    def plain_line(self) -> str:
        end = self.text.find('\n', self.position)
        line = self.text[self.position:len(self.text) if end < 0 else end]
        comment = re.search(r'[ \t]#', line)
        if comment is not None:
            line = line[:comment.start()]
        if ': ' in line or line.endswith(':'):
            raise self.error('a mapping begins on the line of its key; begin a new line')
        line = line.rstrip(' \t')
        self.position += len(line)
        return line

    def quoted(self) -> str:
        quote = self.peek()
        start = self.position
        self.position += 1
        parts: List[str] = []
        while True:
            character = self.peek()
            if not character:
                raise self.error('a quote is not closed', start)
            if character == quote:
                if quote == "'" and self.at(1) == "'":
                    parts.append("'")
                    self.position += 2
                    continue
                self.position += 1
                return ''.join(parts)
            if character == '\n':
                parts.append(self.folded_break(parts))
            elif character == '\\' and quote == '"':
                parts.append(self.escape())
            else:
                parts.append(character)
                self.position += 1

    def folded_break(self, parts: List[str]) -> str:
        """Fold the line ends in a quoted scalar: one is a space, more are one fewer."""
        while parts and parts[-1] in (' ', '\t'):
            parts.pop()
        lines = 0
        while self.peek() in ('\n', ' ', '\t') and self.peek():
            lines += self.peek() == '\n'
            self.position += 1
        return ' ' if lines == 1 else '\n' * (lines - 1)

    def escape(self) -> str:
        code = self.at(1)
        if code == '\n':
            self.position += 2
            while self.peek() in (' ', '\t') and self.peek():
                self.position += 1
            return ''
        if code in _HEXADECIMAL_ESCAPES:
            digits = self.text[self.position + 2:self.position + 2 + _HEXADECIMAL_ESCAPES[code]]
            try:
                character = chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise self.error(f"'\\{code}{digits}' is no character") from None
            self.position += 2 + len(digits)
            return character
        if code not in _ESCAPES:
            raise self.error(f"there is no escape '\\{code}'")
        self.position += 2
        return _ESCAPES[code]

    def block_scalar(self, indent: int) -> str:
        """Read a literal (|) or folded (>) scalar."""
        end = self.text.find('\n', self.position)
        end = len(self.text) if end < 0 else end
        header = self.text[self.position:end]
        match = _BLOCK_HEADER.fullmatch(header)
        if match is None:
            raise self.error(f"'{header}' is no header of a block scalar")
        chomp = match[1] or match[4] or ''
        given = match[2] or match[3]
        depth = max(indent, 0) + int(given) if given else None
        self.position = min(end + 1, len(self.text))
        lines: List[str] = []
        while self.position < len(self.text):
            end = self.text.find('\n', self.position)
            end = len(self.text) if end < 0 else end
            line = self.text[self.position:end]
            spaces = len(line) - len(line.lstrip(' '))
            if line.strip(' '):
                if depth is None:
                    depth = max(spaces, indent + 1)
                if spaces < depth or self.is_document_marker():
                    break
            lines.append(line[depth:] if depth is not None else '')
            self.position = min(end + 1, len(self.text))
        # The line end before the next node belongs to it.
        if self.position < len(self.text) or self.text.endswith('\n'):
            self.position -= 1
        trailing = 0
        while lines and not lines[-1]:
            lines.pop()
            trailing += 1
        text = '\n'.join(lines) if header[0] == '|' else _folded(lines)
        if chomp == '-' or not (lines or chomp == '+'):
            return text
        return text + '\n' * (1 + trailing if chomp == '+' and lines else trailing or 1 if (
            chomp == '+') else 1)

    # Flow style.

    def flow_collection(self) -> Any:
        self.enter()
        is_mapping = self.peek() == '{'
        closing = '}' if is_mapping else ']'
        start = self.position
        self.position += 1
        items: List[Any] = []
        mapping: Dict[Any, Any] = {}
        merges: List[Any] = []
        while True:
            self.skip_lines()
            if self.position >= len(self.text):
                raise self.error(f"'{closing}' is missing", start)
            if self.peek() == closing:
                self.position += 1
                break
            key, value = self.flow_entry()
            if is_mapping:
                self.store(mapping, merges, key, None if value is _MISSING else value)
            else:
                items.append(key if value is _MISSING else {key: value})
            self.skip_lines()
            if self.peek() == ',':
                self.position += 1
            elif self.peek() != closing:
                raise self.error(f"',' or '{closing}' is missing")
        self.depth -= 1
        return self.merged(mapping, merges) if is_mapping else items

    def flow_entry(self) -> Tuple[Any, Any]:
        """Read a node, and the value behind it if it is a key."""
        if self.peek() == '?' and self.at(1) in (' ', '\n'):
            self.position += 1
            self.skip_lines()
        is_quoted = self.peek() in ('"', "'")
        key = None if self.peek() == ':' else self.flow_node()
        self.skip_lines()
        if self.peek() != ':' or not (is_quoted or self.at(1) in (
                ' ', '\t', '\n', ',', ']', '}', '')):
            return key, _MISSING
        self.position += 1
        self.skip_lines()
        if self.peek() in (',', ']', '}'):
            return key, None
        return key, self.flow_node()

    def flow_node(self) -> Any:
        anchor, tag = self.properties()
        self.skip_lines()
        character = self.peek()
        if character == '*':
            return self.alias()
        if character in ('"', "'"):
            return self.finish(self.quoted(), anchor, tag, False)
        if character in ('[', '{'):
            return self.finish(self.flow_collection(), anchor, tag, False)
        if character in (',', ']', '}'):
            return self.finish('', anchor, tag, True)
        return self.finish(self.flow_plain(), anchor, tag, True)

    def flow_plain(self) -> str:
        if self.peek() in ('%', '@', '`', '|', '>', '#'):
            raise self.error(f"a scalar cannot begin with '{self.peek()}'; quote it")
        parts: List[str] = []
        while True:
            character = self.peek()
            if not character or character in ',[]{}':
                break
            if character == ':' and self.at(1) in (' ', '\t', '\n', ',', ']', '}', '['):
                break
            if character == '#' and parts and parts[-1] in (' ', '\n'):
                break
            if character == '\n':
                parts.append(self.folded_break(parts))
                continue
            parts.append(character)
            self.position += 1
        return ''.join(parts).strip()


def _folded(lines: List[str]) -> str:
    """Join the lines of a folded scalar; deeper lines keep their line ends."""
    text = ''
    breaks = 0
    was_deeper = True
    for index, line in enumerate(lines):
        if not line:
            breaks += 1
            continue
        is_deeper = line[0] in ' \t'
        if index:
            if was_deeper or is_deeper:
                text += '\n' * (breaks + (1 if text else 0))
            else:
                text += '\n' * breaks if breaks else ' '
        text += line
        was_deeper, breaks = is_deeper, 0
    return text


def load_yaml(text: str) -> Any:
    """
    Return the value of a document; ``None`` if it is empty.

    :raises YamlError: if it is invalid.
    """
    return _Reader(text).document()
