"""Functions on contexts and arguments."""

from __future__ import annotations

import sys
import threading

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.constants import S_TO_NS
from rclpy.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Set
else:
    __getattr__ = getter_of(__name__)

g_default_context: Optional[Context] = None
g_context_lock = threading.Lock()


def get_default_context(*, shutting_down: bool = False) -> Context:
    """Return the context that is used where none is given."""
    global g_default_context
    with g_context_lock:
        if g_default_context is None:
            g_default_context = Context()
        if shutting_down:
            context = g_default_context
            g_default_context = None
            return context
        return g_default_context


def remove_ros_args(args: Optional[Sequence[str]] = None) -> List[str]:
    """
    Return a command line without its ROS arguments.

    :param args: The command line; ``None`` stands for ``sys.argv``.
    """
    return _native.remove_ros_args(sys.argv if args is None else list(args))


def ok(*, context: Optional[Context] = None) -> bool:
    """Return whether a context is initialized and not shut down."""
    if context is None:
        context = get_default_context()
    return context.ok()


def shutdown(*, context: Optional[Context] = None) -> None:
    """
    Shut a context down.

    :raises RuntimeError: if it is shut down already.
    """
    if context is None:
        context = get_default_context(shutting_down=True)
    context.shutdown()


def try_shutdown(*, context: Optional[Context] = None) -> None:
    """Shut a context down, unless that has happened."""
    global g_default_context
    if context is None:
        # Only a context that was shut down is replaced by the next call of init.
        with g_context_lock:
            default = g_default_context
        if default is not None:
            default.try_shutdown()
            with g_context_lock:
                if g_default_context is default and default.handle is not None:
                    g_default_context = None
        return
    context.try_shutdown()


def get_rmw_implementation_identifier() -> str:
    """Return the name of the middleware."""
    return _native.get_rmw_implementation_identifier()


def get_available_rmw_implementations() -> Set[str]:
    """Return the names of all middlewares that can be chosen: the one there is."""
    return {_native.get_rmw_implementation_identifier()}


def timeout_sec_to_nsec(timeout_sec: Optional[float]) -> int:
    """
    Convert a time-out in seconds to nanoseconds.

    :param timeout_sec: ``None`` and negative numbers stand for "for ever".
    :returns: nanoseconds, or -1 for "for ever".
    """
    if timeout_sec is None or timeout_sec < 0:
        return -1
    return int(float(timeout_sec) * S_TO_NS)
