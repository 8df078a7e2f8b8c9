"""Action: run a coroutine."""

from __future__ import annotations

import collections.abc
import inspect

from launch.action import Action
from launch.event_handlers import OnShutdown
from launch.utilities import ensure_argument_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any, Awaitable, Callable, Dict, Iterable, Optional, Text

    from launch.event import Event
    from launch.launch_context import LaunchContext


class OpaqueCoroutine(Action):
    """Runs a coroutine with the context; it is cancelled at the end of the launch."""

    def __init__(
        self,
        *,
        coroutine: Callable[..., Awaitable[None]],
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Dict[Text, Any]] = None,
        ignore_context: bool = False,
        **left_over_kwargs: Any,
    ) -> None:
        super().__init__(**left_over_kwargs)
        if not inspect.iscoroutinefunction(coroutine):
            raise TypeError(
                "OpaqueCoroutine expected a coroutine function for 'coroutine', got "
                f"'{type(coroutine)}'")
        caller = 'OpaqueCoroutine'
        ensure_argument_type(args, (collections.abc.Iterable, type(None)), 'args', caller)
        ensure_argument_type(kwargs, (dict, type(None)), 'kwargs', caller)
        ensure_argument_type(ignore_context, bool, 'ignore_context', caller)
        self.__coroutine = coroutine
        self.__args = [] if args is None else args
        self.__kwargs = {} if kwargs is None else kwargs
        self.__ignore_context = ignore_context
        self.__future: Optional[asyncio.Future] = None

    def __on_shutdown(self, event: Event, context: LaunchContext) -> None:
        if self.__future is not None:
            self.__future.cancel()

    def execute(self, context: LaunchContext) -> None:
        """Run the coroutine in the loop of the launch."""
        if context.plan is not None:
            name = getattr(self.__coroutine, '__qualname__', str(self.__coroutine))
            context.plan.add('coroutine', f'run coroutine {name}', coroutine=name)
            context.plan.add_unknown(f'what the coroutine {name} does')
            return
        args = self.__args if self.__ignore_context else [context, *self.__args]
        self.__future = context.asyncio_loop.create_task(
            self.__coroutine(*args, **self.__kwargs))
        context.register_event_handler(OnShutdown(on_shutdown=self.__on_shutdown))

    def get_asyncio_future(self) -> Optional[asyncio.Future]:
        """Return a future that is done when the coroutine is."""
        return self.__future
