"""Hashes of interface types."""

from __future__ import annotations


class TypeHash:
    """The hash of a type's definition, ``RIHS01_…`` as text."""

    _TYPE_HASH_SIZE = 32

    __slots__ = ['_version', '_value']

    def __init__(self, version: int = -1, value: bytes = bytes(_TYPE_HASH_SIZE)) -> None:
        self.version = version
        self.value = value

    @property
    def version(self) -> int:
        """The version of the algorithm: 1, or -1 if there is no hash."""
        return self._version

    @version.setter
    def version(self, value: int) -> None:
        if not isinstance(value, int):
            raise AssertionError(f'version must be an int, got {value!r}')
        self._version = value

    @property
    def value(self) -> bytes:
        """The 32 bytes of the hash."""
        return self._value

    @value.setter
    def value(self, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise AssertionError(f'value must be bytes, got {value!r}')
        self._value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeHash):
            return False
        return self._version == other._version and self._value == other._value

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        if self._version <= 0 or len(self._value) != self._TYPE_HASH_SIZE:
            return 'INVALID'
        return f'RIHS{self._version:02}_{self._value.hex()}'
