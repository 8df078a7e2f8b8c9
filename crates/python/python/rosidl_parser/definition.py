"""
Types of fields, as in `SLOT_TYPES` of a message class, and the parts of definitions.

Nothing here reads files: `rosidl_adapter.parser` does.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

SIGNED_NONEXPLICIT_INTEGER_TYPES = ('short', 'long', 'long long')
UNSIGNED_NONEXPLICIT_INTEGER_TYPES = ('unsigned short', 'unsigned long', 'unsigned long long')
NONEXPLICIT_INTEGER_TYPES = (
    *SIGNED_NONEXPLICIT_INTEGER_TYPES, *UNSIGNED_NONEXPLICIT_INTEGER_TYPES)
SIGNED_EXPLICIT_INTEGER_TYPES = ('int8', 'int16', 'int32', 'int64')
UNSIGNED_EXPLICIT_INTEGER_TYPES = ('uint8', 'uint16', 'uint32', 'uint64')
EXPLICIT_INTEGER_TYPES = (*SIGNED_EXPLICIT_INTEGER_TYPES, *UNSIGNED_EXPLICIT_INTEGER_TYPES)
SIGNED_INTEGER_TYPES = (*SIGNED_NONEXPLICIT_INTEGER_TYPES, *SIGNED_EXPLICIT_INTEGER_TYPES)
UNSIGNED_INTEGER_TYPES = (*UNSIGNED_NONEXPLICIT_INTEGER_TYPES, *UNSIGNED_EXPLICIT_INTEGER_TYPES)
INTEGER_TYPES = (*SIGNED_INTEGER_TYPES, *UNSIGNED_INTEGER_TYPES)
FLOATING_POINT_TYPES = ('float', 'double', 'long double')
CHARACTER_TYPES = ('char', 'wchar')
BOOLEAN_TYPE = 'boolean'
OCTET_TYPE = 'octet'
BASIC_TYPES = (*INTEGER_TYPES, *FLOATING_POINT_TYPES, *CHARACTER_TYPES, BOOLEAN_TYPE, OCTET_TYPE)

EMPTY_STRUCTURE_REQUIRED_MEMBER_NAME = 'structure_needs_at_least_one_member'
CONSTANT_MODULE_SUFFIX = '_Constants'
SERVICE_REQUEST_MESSAGE_SUFFIX = '_Request'
SERVICE_RESPONSE_MESSAGE_SUFFIX = '_Response'
SERVICE_EVENT_MESSAGE_SUFFIX = '_Event'
ACTION_GOAL_SUFFIX = '_Goal'
ACTION_RESULT_SUFFIX = '_Result'
ACTION_FEEDBACK_SUFFIX = '_Feedback'
ACTION_GOAL_SERVICE_SUFFIX = '_SendGoal'
ACTION_RESULT_SERVICE_SUFFIX = '_GetResult'
ACTION_FEEDBACK_MESSAGE_SUFFIX = '_FeedbackMessage'


class AbstractType:
    """Base of all types."""

    __slots__: Sequence[str] = ()

    def _values(self) -> tuple:
        return tuple(getattr(self, name)
                     for cls in type(self).__mro__ for name in getattr(cls, '__slots__', ()))

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._values()))})"


class AbstractNestableType(AbstractType):
    """A type that can be an element of an array or sequence."""

    __slots__ = ()


class BasicType(AbstractNestableType):
    """A number, a boolean, a character or an octet."""

    __slots__ = ('typename',)

    def __init__(self, typename: str) -> None:
        if typename not in BASIC_TYPES:
            raise AssertionError(f'{typename!r} is no basic type')
        self.typename = typename


class NamedType(AbstractNestableType):
    """A type with a name."""

    __slots__ = ('name',)

    def __init__(self, name: str) -> None:
        self.name = name


class NamespacedType(AbstractNestableType):
    """A type with a name and namespaces, such as a message."""

    __slots__ = ('namespaces', 'name')

    def __init__(self, namespaces: Sequence[str], name: str) -> None:
        self.namespaces = tuple(namespaces)
        self.name = name

    def namespaced_name(self) -> tuple:
        """Return the namespaces and the name."""
        return (*self.namespaces, self.name)


class AbstractGenericString(AbstractNestableType):
    """Base of all strings."""

    __slots__ = ()

    def has_maximum_size(self) -> bool:
        """Return whether its length is bounded."""
        return False


class AbstractString(AbstractGenericString):
    """Base of strings of 8-bit characters."""

    __slots__ = ()


class BoundedString(AbstractString):
    """A string with a maximal length."""

    __slots__ = ('maximum_size',)

    def __init__(self, maximum_size: int) -> None:
        self.maximum_size = int(maximum_size)

    def has_maximum_size(self) -> bool:
        """Return whether its length is bounded."""
        return True


class UnboundedString(AbstractString):
    """A string of any length."""

    __slots__ = ()


class AbstractWString(AbstractGenericString):
    """Base of strings of 16-bit characters."""

    __slots__ = ()


class BoundedWString(AbstractWString):
    """A wide string with a maximal length."""

    __slots__ = ('maximum_size',)

    def __init__(self, maximum_size: int) -> None:
        self.maximum_size = int(maximum_size)

    def has_maximum_size(self) -> bool:
        """Return whether its length is bounded."""
        return True


class UnboundedWString(AbstractWString):
    """A wide string of any length."""

    __slots__ = ()


class AbstractNestedType(AbstractType):
    """Base of arrays and sequences."""

    __slots__ = ('value_type',)

    def __init__(self, value_type: AbstractNestableType) -> None:
        self.value_type = value_type

    def has_maximum_size(self) -> bool:
        """Return whether its number of elements is bounded."""
        return True


class Array(AbstractNestedType):
    """A fixed number of elements."""

    __slots__ = ('size',)

    def __init__(self, value_type: AbstractNestableType, size: int) -> None:
        super().__init__(value_type)
        self.size = int(size)


class AbstractSequence(AbstractNestedType):
    """Base of sequences."""

    __slots__ = ()


class BoundedSequence(AbstractSequence):
    """A sequence with a maximal number of elements."""

    __slots__ = ('maximum_size',)

    def __init__(self, value_type: AbstractNestableType, maximum_size: int) -> None:
        super().__init__(value_type)
        self.maximum_size = int(maximum_size)


class UnboundedSequence(AbstractSequence):
    """A sequence of any number of elements."""

    __slots__ = ()

    def has_maximum_size(self) -> bool:
        """Return whether its number of elements is bounded."""
        return False


class Annotation:
    """An annotation, such as ``@key``."""

    __slots__ = ('name', 'value')

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Annotatable:
    """Base of what can be annotated."""

    __slots__ = ('annotations',)

    def __init__(self) -> None:
        self.annotations: List[Annotation] = []

    def get_annotation_value(self, name: str) -> Any:
        """Return the value of an annotation; ``ValueError`` if there is not exactly one."""
        values = self.get_annotation_values(name)
        if len(values) != 1:
            raise ValueError(f"{'Multiple' if values else 'No'} '{name}' annotations")
        return values[0]

    def get_annotation_values(self, name: str) -> List[Any]:
        """Return the values of all annotations with a name."""
        return [one.value for one in self.annotations if one.name == name]

    def get_comment_lines(self) -> List[str]:
        """Return the lines of the comments."""
        return [
            line for value in self.get_annotation_values('verbatim')
            if value.get('language') == 'comment' and 'text' in value
            for line in value['text'].splitlines()]

    def has_annotation(self, name: str) -> bool:
        """Return whether there is exactly one annotation with a name."""
        return len(self.get_annotation_values(name)) == 1

    def has_annotations(self, name: str) -> bool:
        """Return whether there is an annotation with a name."""
        return bool(self.get_annotation_values(name))


def _check(value: Any, *classes: type) -> None:
    if not isinstance(value, classes):
        raise AssertionError(
            f"{value!r} is no {' or '.join(one.__name__ for one in classes)}")


class Member(Annotatable):
    """A field of a structure."""

    __slots__ = ('type', 'name')

    def __init__(self, type_: AbstractType, name: str) -> None:
        super().__init__()
        _check(type_, AbstractType)
        self.type = type_
        self.name = name


class Structure(Annotatable):
    """A structure: its name and fields."""

    __slots__ = ('namespaced_type', 'members')

    def __init__(
        self, namespaced_type: NamespacedType, members: Optional[List[Member]] = None,
    ) -> None:
        super().__init__()
        _check(namespaced_type, NamespacedType)
        self.namespaced_type = namespaced_type
        self.members = members or []

    def has_any_member_with_annotation(self, name: str) -> bool:
        """Return whether a field has exactly one annotation with a name."""
        return any(member.has_annotation(name) for member in self.members)


class Include:
    """A file that another one includes."""

    __slots__ = ('locator',)

    def __init__(self, locator: str) -> None:
        self.locator = locator


class Constant(Annotatable):
    """A constant."""

    __slots__ = ('name', 'type', 'value')

    def __init__(self, name: str, type_: AbstractType, value: Any) -> None:
        super().__init__()
        _check(type_, AbstractType)
        self.name = name
        self.type = type_
        self.value = value


class Message:
    """A message: its structure and constants."""

    __slots__ = ('structure', 'constants')

    def __init__(self, structure: Structure) -> None:
        _check(structure, Structure)
        self.structure = structure
        self.constants: List[Constant] = []


def _part(whole: NamespacedType, suffix: str, members: Sequence[Tuple[AbstractType, str]]) -> Message:
    return Message(Structure(
        NamespacedType(whole.namespaces, whole.name + suffix),
        [Member(type_, name) for type_, name in members]))


def _check_part(message: Message, whole: NamespacedType, suffix: str) -> Message:
    _check(message, Message)
    found = message.structure.namespaced_type
    if found.namespaces != whole.namespaces or found.name != whole.name + suffix:
        raise AssertionError(
            f"{'/'.join(found.namespaced_name())} is no {whole.name + suffix} of "
            f"{'/'.join(whole.namespaces)}")
    return message


class Service:
    """A service: its request, response and event."""

    __slots__ = ('namespaced_type', 'request_message', 'response_message', 'event_message')

    def __init__(
        self, namespaced_type: NamespacedType, request: Message, response: Message,
    ) -> None:
        _check(namespaced_type, NamespacedType)
        self.namespaced_type = namespaced_type
        self.request_message = _check_part(
            request, namespaced_type, SERVICE_REQUEST_MESSAGE_SUFFIX)
        self.response_message = _check_part(
            response, namespaced_type, SERVICE_RESPONSE_MESSAGE_SUFFIX)
        self.event_message = _part(namespaced_type, SERVICE_EVENT_MESSAGE_SUFFIX, [
            (NamespacedType(['service_msgs', 'msg'], 'ServiceEventInfo'), 'info'),
            (BoundedSequence(request.structure.namespaced_type, 1), 'request'),
            (BoundedSequence(response.structure.namespaced_type, 1), 'response')])


class Action:
    """An action: its goal, result and feedback, and the services that carry them."""

    __slots__ = (
        'namespaced_type', 'goal', 'result', 'feedback', 'send_goal_service',
        'get_result_service', 'feedback_message', 'implicit_includes')

    def __init__(
        self, namespaced_type: NamespacedType, goal: Message, result: Message, feedback: Message,
    ) -> None:
        _check(namespaced_type, NamespacedType)
        whole = self.namespaced_type = namespaced_type
        self.goal = _check_part(goal, whole, ACTION_GOAL_SUFFIX)
        self.result = _check_part(result, whole, ACTION_RESULT_SUFFIX)
        self.feedback = _check_part(feedback, whole, ACTION_FEEDBACK_SUFFIX)
        goal_id = (NamespacedType(['unique_identifier_msgs', 'msg'], 'UUID'), 'goal_id')

        def service(suffix: str, request: Any, response: Any) -> Service:
            return Service(
                NamespacedType(whole.namespaces, whole.name + suffix),
                _part(whole, suffix + SERVICE_REQUEST_MESSAGE_SUFFIX, request),
                _part(whole, suffix + SERVICE_RESPONSE_MESSAGE_SUFFIX, response))

        self.send_goal_service = service(
            ACTION_GOAL_SERVICE_SUFFIX, [goal_id, (goal.structure.namespaced_type, 'goal')],
            [(BasicType(BOOLEAN_TYPE), 'accepted'),
             (NamespacedType(['builtin_interfaces', 'msg'], 'Time'), 'stamp')])
        self.get_result_service = service(
            ACTION_RESULT_SERVICE_SUFFIX, [goal_id],
            [(BasicType('int8'), 'status'), (result.structure.namespaced_type, 'result')])
        self.feedback_message = _part(
            whole, ACTION_FEEDBACK_MESSAGE_SUFFIX,
            [goal_id, (feedback.structure.namespaced_type, 'feedback')])
        self.implicit_includes = [
            Include('builtin_interfaces/msg/Time.idl'),
            Include('service_msgs/msg/ServiceEventInfo.idl'),
            Include('unique_identifier_msgs/msg/UUID.idl')]


class IdlLocator:
    """The place of a file: a folder, and the path from there."""

    __slots__ = ('basepath', 'relative_path')

    def __init__(self, basepath: Any, relative_path: Any) -> None:
        from pathlib import Path
        self.basepath = Path(basepath)
        self.relative_path = Path(relative_path)

    def get_absolute_path(self) -> Any:
        """Return the whole path."""
        return self.basepath / self.relative_path


class IdlContent:
    """The elements of a file."""

    __slots__ = ('elements',)

    def __init__(self) -> None:
        self.elements: List[Any] = []

    def get_elements_of_type(self, type_: type) -> List[Any]:
        """Return the elements of a class."""
        return [element for element in self.elements if isinstance(element, type_)]


class IdlFile:
    """A file with its content."""

    __slots__ = ('locator', 'content')

    def __init__(self, locator: IdlLocator, content: IdlContent) -> None:
        _check(locator, IdlLocator)
        _check(content, IdlContent)
        self.locator = locator
        self.content = content
