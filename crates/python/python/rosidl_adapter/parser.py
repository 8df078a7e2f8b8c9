"""
Definition files (`.msg`, `.srv`, `.action`) as specifications: fields, constants, comments.

Programs read definitions with it. The classes of messages do not come from here: the native
module has a reader of its own.
"""

from __future__ import annotations

import re
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

PACKAGE_NAME_MESSAGE_TYPE_SEPARATOR = '/'
COMMENT_DELIMITER = '#'
CONSTANT_SEPARATOR = '='
ARRAY_UPPER_BOUND_TOKEN = '<='
STRING_UPPER_BOUND_TOKEN = '<='

SERVICE_REQUEST_RESPONSE_SEPARATOR = '---'
SERVICE_REQUEST_MESSAGE_SUFFIX = '_Request'
SERVICE_RESPONSE_MESSAGE_SUFFIX = '_Response'
SERVICE_EVENT_MESSAGE_SUFFIX = '_Event'

ACTION_REQUEST_RESPONSE_SEPARATOR = '---'
ACTION_GOAL_SUFFIX = '_Goal'
ACTION_RESULT_SUFFIX = '_Result'
ACTION_FEEDBACK_SUFFIX = '_Feedback'
ACTION_GOAL_SERVICE_SUFFIX = '_Goal'
ACTION_RESULT_SERVICE_SUFFIX = '_Result'
ACTION_FEEDBACK_MESSAGE_SUFFIX = '_Feedback'

_INTEGER_RANGES = {
    f'{sign}int{bits}': (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
    for bits in (8, 16, 32, 64) for sign in ('', 'u')}
_INTEGER_RANGES['byte'] = _INTEGER_RANGES['char'] = (0, 255)
_TEXTS = ('string', 'wstring')
PRIMITIVE_TYPES = [
    'bool', 'byte', 'char', 'float32', 'float64', 'int8', 'uint8', 'int16', 'uint16', 'int32',
    'uint32', 'int64', 'uint64', *_TEXTS, 'duration', 'time']

VALID_PACKAGE_NAME_PATTERN = re.compile('^(?!.*__)(?!.*_$)[a-z][a-z0-9_]*$')
VALID_FIELD_NAME_PATTERN = VALID_PACKAGE_NAME_PATTERN
VALID_MESSAGE_NAME_PATTERN = re.compile('^[A-Z][A-Za-z0-9]*$')
VALID_CONSTANT_NAME_PATTERN = re.compile('^(?!.*__)(?!.*_$)[A-Z][A-Z0-9_]*$')


class InvalidSpecification(Exception):
    """A definition that is malformed."""


class InvalidActionSpecification(InvalidSpecification):
    """An action that has not three parts."""


class InvalidServiceSpecification(InvalidSpecification):
    """A service that has not two parts."""


class InvalidResourceName(InvalidSpecification):
    """A name that breaks the rules of its kind."""


class InvalidFieldDefinition(InvalidSpecification):
    """A line that defines no field."""


class UnknownMessageType(InvalidSpecification):
    """A field of a message type that is not known."""


class InvalidValue(Exception):
    """A value that its type cannot have."""

    def __init__(
        self, type_: Any, value_string: str, message_suffix: Optional[str] = None,
    ) -> None:
        suffix = f': {message_suffix}' if message_suffix else ''
        super().__init__(
            f"value '{value_string}' can not be converted to type '{type_}'{suffix}")


def _is_valid(pattern: re.Pattern, name: str) -> bool:
    try:
        return pattern.match(name) is not None
    except TypeError:
        raise InvalidResourceName(name) from None


def is_valid_package_name(name: str) -> bool:
    """Return whether a name is one of a package."""
    return _is_valid(VALID_PACKAGE_NAME_PATTERN, name)


def is_valid_field_name(name: str) -> bool:
    """Return whether a name is one of a field."""
    return _is_valid(VALID_FIELD_NAME_PATTERN, name)


def is_valid_message_name(name: str) -> bool:
    """Return whether a name is one of a message, or of a part of a service or action."""
    if isinstance(name, str):
        for suffix in ('_Sample', SERVICE_REQUEST_MESSAGE_SUFFIX, SERVICE_RESPONSE_MESSAGE_SUFFIX,
                       ACTION_GOAL_SUFFIX, ACTION_RESULT_SUFFIX, ACTION_FEEDBACK_SUFFIX):
            name = name.removesuffix(suffix)
    return _is_valid(VALID_MESSAGE_NAME_PATTERN, name)


def is_valid_constant_name(name: str) -> bool:
    """Return whether a name is one of a constant."""
    return _is_valid(VALID_CONSTANT_NAME_PATTERN, name)


class _Comparable:
    """Compares by the values in `_key`."""

    def _key(self) -> Tuple:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore

    def __hash__(self) -> int:
        return hash(str(self))


class BaseType(_Comparable):
    """A type without brackets: a primitive one, or a message."""

    __slots__ = ['pkg_name', 'type', 'string_upper_bound']

    def __init__(self, type_string: str, context_package_name: Optional[str] = None) -> None:
        """
        Parse a type.

        :param context_package_name: The package of names without one.
        :raises InvalidResourceName: if a name is malformed.
        """
        self.pkg_name: Optional[str] = None
        self.string_upper_bound: Optional[int] = None
        text, token, bound = type_string.partition(STRING_UPPER_BOUND_TOKEN)
        if type_string in PRIMITIVE_TYPES:
            self.type = type_string
        elif token and text in _TEXTS:
            self.type = text
            limit = _positive(bound)
            if limit is None:
                raise TypeError(
                    f"the upper bound of the string type '{type_string}' must be an integer "
                    'value > 0')
            self.string_upper_bound = limit
        else:
            package, separator, name = type_string.rpartition(PACKAGE_NAME_MESSAGE_TYPE_SEPARATOR)
            self.pkg_name = package if separator else context_package_name
            self.type = name
            if self.pkg_name is None or not is_valid_package_name(self.pkg_name):
                raise InvalidResourceName(f"'{self.pkg_name}' in '{type_string}'")
            if not is_valid_message_name(name):
                raise InvalidResourceName(f"'{name}' in '{type_string}'")

    def is_primitive_type(self) -> bool:
        """Return whether it is no message."""
        return self.pkg_name is None

    def _key(self) -> Tuple:
        return self.pkg_name, self.type, self.string_upper_bound

    def __str__(self) -> str:
        if self.pkg_name is not None:
            return f'{self.pkg_name}/{self.type}'
        if self.string_upper_bound is not None:
            return f'{self.type}{STRING_UPPER_BOUND_TOKEN}{self.string_upper_bound}'
        return self.type


class Type(BaseType):
    """A type with or without brackets."""

    __slots__ = ['is_array', 'array_size', 'is_upper_bound']

    def __init__(self, type_string: str, context_package_name: Optional[str] = None) -> None:
        """
        Parse a type such as ``int32[<=3]``.

        :raises TypeError: if the text in the brackets is no size.
        :raises InvalidResourceName: if a name is malformed.
        """
        self.is_array = type_string.endswith(']')
        self.array_size: Optional[int] = None
        self.is_upper_bound = False
        if self.is_array:
            type_string, found, size = type_string[:-1].rpartition('[')
            if not found:
                raise TypeError(f"the type '{size}]' ends with ']' but does not contain a '['")
            if size:
                self.is_upper_bound = size.startswith(ARRAY_UPPER_BOUND_TOKEN)
                limit = _positive(size.removeprefix(ARRAY_UPPER_BOUND_TOKEN))
                if limit is None:
                    raise TypeError(
                        f"the size of array type '{type_string}[{size}]' must be an integer "
                        'value > 0')
                self.array_size = limit
        super().__init__(type_string, context_package_name)

    def is_dynamic_array(self) -> bool:
        """Return whether the number of elements varies."""
        return self.is_array and (not self.array_size or self.is_upper_bound)

    def is_fixed_size_array(self) -> bool:
        """Return whether it is an array of a fixed size."""
        return self.is_array and bool(self.array_size) and not self.is_upper_bound

    def _key(self) -> Tuple:
        return (*super()._key(), self.is_array, self.array_size, self.is_upper_bound)

    def __str__(self) -> str:
        text = super().__str__()
        if self.is_array:
            bound = ARRAY_UPPER_BOUND_TOKEN if self.is_upper_bound else ''
            text += f"[{bound}{self.array_size or ''}]"
        return text


def _positive(text: str) -> Optional[int]:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if number > 0 else None


class Constant(_Comparable):
    """A constant of a message."""

    __slots__ = ['type', 'name', 'value', 'annotations']

    def __init__(self, primitive_type: str, name: str, value_string: Optional[str]) -> None:
        """
        Create a constant.

        :raises TypeError: if the type is not primitive.
        :raises NameError: if the name is malformed.
        :raises ValueError: if there is no value.
        :raises InvalidValue: if the type cannot have it.
        """
        if primitive_type not in PRIMITIVE_TYPES:
            raise TypeError(f"the constant type '{primitive_type}' must be a primitive type")
        if not is_valid_constant_name(name):
            raise NameError(f"the constant name '{name}' is not valid")
        if value_string is None:
            raise ValueError("the constant value must not be 'None'")
        self.type = primitive_type
        self.name = name
        self.value = parse_primitive_value_string(Type(primitive_type), value_string)
        self.annotations: Dict[str, Any] = {}

    def _key(self) -> Tuple:
        return self.type, self.name, self.value

    def __str__(self) -> str:
        value = f"'{self.value}'" if self.type in _TEXTS else self.value
        return f'{self.type} {self.name}={value}'


class Field(_Comparable):
    """A field of a message."""

    def __init__(
        self, type_: Type, name: str, default_value_string: Optional[str] = None,
    ) -> None:
        """
        Create a field.

        :raises TypeError: if ``type_`` is no :class:`Type`.
        :raises NameError: if the name is malformed.
        :raises InvalidValue: if the type cannot have the default.
        """
        if not isinstance(type_, Type):
            raise TypeError(f"the field type '{type_}' must be a 'Type' instance")
        if not is_valid_field_name(name):
            raise NameError(
                f"'{name}' is an invalid field name. It should have the pattern "
                f"'{VALID_FIELD_NAME_PATTERN.pattern}'")
        self.type = type_
        self.name = name
        self.default_value = (
            None if default_value_string is None
            else parse_value_string(type_, default_value_string))
        self.annotations: Dict[str, Any] = {}

    def _key(self) -> Tuple:
        return self.type, self.name, self.default_value

    def __str__(self) -> str:
        text = f'{self.type} {self.name}'
        if self.default_value is None:
            return text
        is_text = self.type.is_primitive_type() and not self.type.is_array and (
            self.type.type in _TEXTS)
        return f"{text} '{self.default_value}'" if is_text else f'{text} {self.default_value}'


def _check_unique(names: Iterable[str], kind: str) -> None:
    names = list(names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f'the {kind}s contains duplicate names: {", ".join(twice)}')


class MessageSpecification(_Comparable):
    """A message: its fields and constants."""

    def __init__(
        self, pkg_name: str, msg_name: str, fields: List[Field], constants: List[Constant],
    ) -> None:
        """
        Create a specification.

        :raises ValueError: if two fields or constants have the same name.
        """
        self.base_type = BaseType(f'{pkg_name}{PACKAGE_NAME_MESSAGE_TYPE_SEPARATOR}{msg_name}')
        self.msg_name = msg_name
        self.annotations: Dict[str, Any] = {}
        _check_unique((field.name for field in fields), 'fields iterable')
        _check_unique((constant.name for constant in constants), 'constants iterable')
        self.fields = list(fields)
        self.constants = list(constants)

    def _key(self) -> Tuple:
        return self.base_type, self.fields, self.constants

    def __str__(self) -> str:
        return '\n'.join([
            f'# {self.base_type}', *map(str, self.constants), *map(str, self.fields)])


class ServiceSpecification:
    """A service: its request and response."""

    def __init__(
        self, pkg_name: str, srv_name: str, request: MessageSpecification,
        response: MessageSpecification,
    ) -> None:
        self.pkg_name = pkg_name
        self.srv_name = srv_name
        self.request = request
        self.response = response

    def __str__(self) -> str:
        return f'# {self.pkg_name}/{self.srv_name}\n{self.request}\n---\n{self.response}'


class ActionSpecification:
    """An action: its goal, result and feedback."""

    def __init__(
        self, pkg_name: str, action_name: str, goal: MessageSpecification,
        result: MessageSpecification, feedback: MessageSpecification,
    ) -> None:
        self.pkg_name = pkg_name
        self.action_name = action_name
        self.goal = goal
        self.result = result
        self.feedback = feedback


# --- texts

def extract_file_level_comments(message_string: str) -> Tuple[List[str], List[str]]:
    """Return the lines of the comment at the beginning, and the other lines."""
    lines = message_string.splitlines()
    end = next(
        (index for index, line in enumerate(lines) if not line.startswith(COMMENT_DELIMITER)), None)
    if end is None:
        end = len(lines)
    return [line.lstrip(COMMENT_DELIMITER) for line in lines[:end]], lines[end:]


def _read(path: Any) -> str:
    with open(path, encoding='utf-8') as file:
        return file.read()


def parse_message_file(pkg_name: str, interface_filename: Any) -> MessageSpecification:
    """Return the message in a file, whose name is that of the message."""
    return parse_message_string(pkg_name, _stem(interface_filename), _read(interface_filename))


def _stem(path: Any) -> str:
    import os
    return os.path.splitext(os.path.basename(path))[0]


def parse_message_string(pkg_name: str, msg_name: str, message_string: str) -> MessageSpecification:
    """
    Return a message.

    :raises InvalidFieldDefinition: if a line has a type alone.
    :raises: as :class:`Field` and :class:`Constant`.
    """
    fields: List[Field] = []
    constants: List[Constant] = []
    last: Any = None
    # Comments above a line belong to what it defines.
    above: List[str] = []
    own_comments, lines = extract_file_level_comments(message_string.replace('\t', ' '))
    for line in lines:
        code, delimiter, comment = line.rstrip().partition(COMMENT_DELIMITER)
        if delimiter:
            comment = comment.lstrip(COMMENT_DELIMITER)
            if code and not code.strip():
                # An indented comment goes on with what the line above defines.
                if last is not None:
                    last.annotations.setdefault('comment', []).append(comment)
                continue
            above.append(comment)
        if not code.rstrip():
            continue
        last = _parse_definition(pkg_name, code.rstrip())
        (fields if isinstance(last, Field) else constants).append(last)
        last.annotations.setdefault('comment', []).extend(above)
        above = []
    message = MessageSpecification(pkg_name, msg_name, fields, constants)
    message.annotations['comment'] = own_comments
    for one in (message, *fields, *constants):
        process_comments(one)
    return message


def _parse_definition(pkg_name: str, line: str) -> Any:
    type_string, _, rest = line.partition(' ')
    rest = rest.lstrip()
    if not rest:
        raise InvalidFieldDefinition(line)
    name, separator, value = rest.partition(CONSTANT_SEPARATOR)
    if separator:
        return Constant(type_string, name.rstrip(), value.lstrip())
    name, _, default = rest.partition(' ')
    return Field(Type(type_string, context_package_name=pkg_name), name, default.lstrip() or None)


def process_comments(instance: Any) -> None:
    """Tidy the comment of a field, constant or message, and take a unit such as ``[m]`` from it."""
    lines = instance.annotations.get('comment')
    if lines is None:
        return
    units = re.findall(r'(\s*\[([^,\]]+)\])', '\n'.join(lines))
    if len(units) == 1:
        text, instance.annotations['unit'] = units[0]
        lines = [line.replace(text, '') for line in lines]
    kept: List[str] = []
    for line in lines:
        # No empty line at the beginning, and no two in succession.
        if line or (kept and kept[-1]):
            kept.append(line)
    if kept and not kept[-1]:
        kept.pop()
    if kept:
        kept = textwrap.dedent('\n'.join(kept)).split('\n')
    instance.annotations['comment'] = kept


# --- values

def parse_value_string(type_: Type, value_string: str) -> Any:
    """
    Return the value that a default stands for.

    :raises InvalidValue: if the type cannot have it.
    """
    if type_.is_primitive_type() and not type_.is_array:
        return parse_primitive_value_string(type_, value_string)
    if not type_.is_primitive_type():
        raise NotImplementedError(
            f"parsing string values into type '{type_}' is not supported")
    if not (value_string.startswith('[') and value_string.endswith(']')):
        raise InvalidValue(type_, value_string, "array value must start with '[' and end with ']'")
    inner = value_string[1:-1]
    if type_.type in _TEXTS:
        elements = parse_string_array_value_string(inner, type_.array_size)
    else:
        elements = inner.split(',') if inner else []
    if type_.array_size and (len(elements) > type_.array_size if type_.is_upper_bound
                             else len(elements) != type_.array_size):
        relation = 'not more than' if type_.is_upper_bound else 'exactly'
        raise InvalidValue(
            type_, value_string,
            f'array must have {relation} {type_.array_size} elements, not {len(elements)}')
    base = Type(BaseType.__str__(type_))
    values = []
    for index, element in enumerate(elements):
        element = element.strip()
        try:
            values.append(parse_primitive_value_string(base, element))
        except InvalidValue as error:
            raise InvalidValue(
                type_, value_string, f'element {index} with {error}') from None
    return values


def parse_string_array_value_string(
    element_string: str, expected_size: Optional[int],
) -> List[str]:
    """Split the elements of an array of strings at the commas outside of quotes."""
    elements = []
    rest = element_string.lstrip(' ')
    while rest:
        if rest[0] == ',':
            raise ValueError(f'unexpected "," at beginning of [{rest}]')
        if rest[0] in '"\'':
            end = find_matching_end_quote(rest, rest[0])
            if end == -1:
                raise ValueError(f'string [{rest}] incorrectly quoted')
            elements.append(rest[1:end + 1].replace('\\' + rest[0], rest[0]))
            rest = rest[end + 2:].lstrip(' ')
            if rest[:1] not in ('', ','):
                raise ValueError(f'a comma is missing before [{rest}]')
            rest = rest[1:]
        else:
            element, _, rest = rest.partition(',')
            elements.append(element.strip())
        rest = rest.lstrip(' ')
    return elements


def find_matching_end_quote(string: str, quote: str) -> int:
    """Return the index of the last character before the closing quote, or -1."""
    found = re.compile(rf'(?<!\\){re.escape(quote)}').search(string, 1)
    return -1 if found is None else found.start() - 1


def parse_primitive_value_string(type_: Type, value_string: str) -> Any:
    """
    Return a value of a primitive type.

    :raises ValueError: if the type is no primitive one.
    :raises InvalidValue: if the type cannot have the value.
    """
    if not type_.is_primitive_type() or type_.is_array:
        raise ValueError('the passed type must be a non-array primitive type')
    name = type_.type
    if name == 'bool':
        values = {'true': True, '1': True, 'false': False, '0': False}
        if value_string.lower() not in values:
            raise InvalidValue(
                name, value_string, "must be either 'true' / '1' or 'false' / '0'")
        return values[value_string.lower()]
    if name in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[name]
        try:
            number = int(value_string, 0)
        except ValueError:
            try:
                number = int(value_string)
            except ValueError:
                raise InvalidValue(name, value_string) from None
        if not low <= number <= high:
            raise InvalidValue(
                name, value_string, f'must be a valid integer value >= {low} and <= {high}')
        return number
    if name in ('float32', 'float64'):
        try:
            return float(value_string)
        except ValueError:
            raise InvalidValue(
                name, value_string, 'must be a floating point number using "." as the separator'
            ) from None
    if name in _TEXTS:
        return _parse_text(type_, value_string)
    raise ValueError(f"unknown primitive type '{name}'")


def _parse_text(type_: Type, value_string: str) -> str:
    text = value_string
    quote = text[:1]
    if quote and quote in '"\'' and len(text) > 1 and text.endswith(quote):
        if re.search(rf'(?<!\\){quote}', text[1:-1]):
            raise InvalidValue(
                type_, value_string, f'string inner quotes not properly escaped: {quote}')
        text = text[1:-1].replace('\\' + quote, quote)
    bound = type_.string_upper_bound
    if bound and len(text) > bound:
        raise InvalidValue(
            type_, value_string, f'string must not exceed the maximum length of {bound} characters')
    return text


def validate_field_types(spec: Any, known_msg_types: Iterable[BaseType]) -> None:
    """
    Check that the messages in fields are known.

    :raises UnknownMessageType: if one is not.
    """
    known = list(known_msg_types)
    if isinstance(spec, MessageSpecification):
        kind, parts = 'Message', [spec]
    elif isinstance(spec, ServiceSpecification):
        kind, parts = 'Service', [spec.request, spec.response]
    elif isinstance(spec, ActionSpecification):
        kind, parts = 'Action', [spec.goal, spec.result, spec.feedback]
    else:
        raise AssertionError(f'Unknown specification type: {type(spec).__name__}')
    for part in parts:
        for field in part.fields:
            if field.type.is_primitive_type():
                continue
            base = BaseType(BaseType.__str__(field.type))
            if base not in known:
                raise UnknownMessageType(
                    f"{kind} interface '{part.base_type}' contains an unknown field type: {field}")


def _parts(text: str, separator: str) -> List[str]:
    parts: List[List[str]] = [[]]
    for line in text.splitlines():
        if line == separator:
            parts.append([])
        else:
            parts[-1].append(line)
    return ['\n'.join(lines) for lines in parts]


def parse_service_file(pkg_name: str, interface_filename: Any) -> ServiceSpecification:
    """Return the service in a file, whose name is that of the service."""
    return parse_service_string(pkg_name, _stem(interface_filename), _read(interface_filename))


def parse_service_string(pkg_name: str, srv_name: str, message_string: str) -> ServiceSpecification:
    """
    Return a service.

    :raises InvalidServiceSpecification: if there is not one line ``---``.
    """
    parts = _parts(message_string, SERVICE_REQUEST_RESPONSE_SEPARATOR)
    if len(parts) != 2:
        raise InvalidServiceSpecification(
            f"Number of '{SERVICE_REQUEST_RESPONSE_SEPARATOR}' separators nonconformant with "
            'service definition')
    suffixes = (SERVICE_REQUEST_MESSAGE_SUFFIX, SERVICE_RESPONSE_MESSAGE_SUFFIX)
    return ServiceSpecification(pkg_name, srv_name, *(
        parse_message_string(pkg_name, srv_name + suffix, part)
        for suffix, part in zip(suffixes, parts)))


def parse_action_file(pkg_name: str, interface_filename: Any) -> ActionSpecification:
    """Return the action in a file, whose name is that of the action."""
    return parse_action_string(pkg_name, _stem(interface_filename), _read(interface_filename))


def parse_action_string(pkg_name: str, action_name: str, action_string: str) -> ActionSpecification:
    """
    Return an action.

    :raises InvalidActionSpecification: if there are not two lines ``---``.
    """
    parts = _parts(action_string, ACTION_REQUEST_RESPONSE_SEPARATOR)
    if len(parts) != 3:
        raise InvalidActionSpecification(
            f"Number of '{ACTION_REQUEST_RESPONSE_SEPARATOR}' separators nonconformant with "
            'action definition')
    suffixes = (ACTION_GOAL_SUFFIX, ACTION_RESULT_SUFFIX, ACTION_FEEDBACK_SUFFIX)
    return ActionSpecification(pkg_name, action_name, *(
        parse_message_string(pkg_name, action_name + suffix, part)
        for suffix, part in zip(suffixes, parts)))
