"""Values of parameters as YAML, written by the native module."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


def yaml_text(value: Any, written: Optional[str] = None) -> str:
    """
    Return the value of a parameter on one line, as ``-p`` and parameter files have it.

    :param written: The text that the value was read from. It stays, if a node reads it as the
        same value: one that declares a string takes it then.
    :raises TypeError: if it has no form in a parameter file, such as bytes.
    """
    from pteros import _native
    return _native.yaml_of_parameter(value, written)
