"""YAML 1.1 documents, read by the native module."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class YamlError(ValueError):
    """A text that is not valid YAML; it names line and column."""


def load_yaml(text: str) -> Any:
    """
    Return the value of a document; ``None`` if it is empty.

    Collections, all styles of scalars, anchors, aliases and merge keys are read. Plain scalars
    have the types of YAML 1.1; dates stay text. Tags other than YAML's own and several documents
    are refused.

    :raises YamlError: if it is invalid.
    """
    from pteros import _native
    try:
        return _native.load_yaml(text)
    except ValueError as error:
        raise YamlError(str(error)) from None
