"""Action: call a function."""

from __future__ import annotations

import collections.abc
import contextlib

from launch.action import Action
from launch.utilities import ensure_argument_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager, Dict, Iterable, List, Optional, Text

    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity


class OpaqueFunction(Action):
    """Calls a function with the context; it may return entities to visit."""

    def __init__(
        self,
        *,
        function: Callable[..., Any],
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Dict[Text, Any]] = None,
        **left_over_kwargs: Any,
    ) -> None:
        super().__init__(**left_over_kwargs)
        if not callable(function):
            raise TypeError(
                "OpaqueFunction expected a callable for 'function', got "
                f"'{type(function)}'")
        ensure_argument_type(args, (collections.abc.Iterable, type(None)), 'args', 'OpaqueFunction')
        ensure_argument_type(kwargs, (dict, type(None)), 'kwargs', 'OpaqueFunction')
        self.__function = function
        self.__args = [] if args is None else args
        self.__kwargs = {} if kwargs is None else kwargs

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Call the function, and return what it returns."""
        with self._interruptible(context):
            return self.__function(context, *self.__args, **self.__kwargs)

    def _interruptible(self, context: LaunchContext) -> ContextManager[None]:
        """Let signals interrupt the function, as a launch file may have anything in it."""
        return context._interruptible()


class UninterruptedFunction(OpaqueFunction):
    """Calls a function of this package; a signal does not interrupt it."""

    def _interruptible(self, context: LaunchContext) -> ContextManager[None]:
        return contextlib.nullcontext()
