"""Namespaces of nodes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def is_root_namespace(ns: str) -> bool:
    """Return whether it is '/'."""
    return ns == '/'


def is_namespace_absolute(ns: str) -> bool:
    """Return whether it begins with a slash."""
    return ns.startswith('/')


def prefix_namespace(base_ns: Optional[str], ns: Optional[str]) -> Optional[str]:
    """Return a namespace below another one; an absolute one stays. ``None`` is no namespace."""
    if ns is None:
        combined = base_ns
    elif not base_ns or is_namespace_absolute(ns):
        combined = ns
    else:
        combined = f"{'' if is_root_namespace(base_ns) else base_ns}/{ns}"
    if combined is None or is_root_namespace(combined):
        return combined
    return combined.rstrip('/')


def make_namespace_absolute(ns: Optional[str]) -> Optional[str]:
    """Return the namespace with a slash in front; ``None`` stays."""
    if ns is None or is_namespace_absolute(ns):
        return ns
    return '/' + ns
