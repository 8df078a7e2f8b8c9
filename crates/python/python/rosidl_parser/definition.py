"""Types of fields, as in `SLOT_TYPES` of a message class."""

from __future__ import annotations

from typing import Any, Sequence

SIGNED_INTEGER_TYPES = ('int8', 'int16', 'int32', 'int64')
UNSIGNED_INTEGER_TYPES = ('uint8', 'uint16', 'uint32', 'uint64')
INTEGER_TYPES = (*SIGNED_INTEGER_TYPES, *UNSIGNED_INTEGER_TYPES)
FLOATING_POINT_TYPES = ('float', 'double', 'long double')
CHARACTER_TYPES = ('char', 'wchar')
BOOLEAN_TYPE = 'boolean'
OCTET_TYPE = 'octet'
BASIC_TYPES = (*INTEGER_TYPES, *FLOATING_POINT_TYPES, *CHARACTER_TYPES, BOOLEAN_TYPE, OCTET_TYPE)


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
