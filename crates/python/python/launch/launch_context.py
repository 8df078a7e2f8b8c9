"""Launch context: the state that substitutions and actions see."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import threading

import launch.logging
from launch.event_queue import EventQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any, Coroutine, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Set,
    )

    from launch.event import Event
    from launch.event_handler import BaseEventHandler
    from launch.launch_guard import LaunchGuard
    from launch.plan import Plan
    from launch.substitution import Substitution


class _Locals:
    """Locals as read-only attributes."""

    def __init__(self, values: Dict[str, Any]) -> None:
        self.__dict__['_values'] = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__['_values']
        try:
            return values[name]
        except KeyError:
            raise AttributeError(
                f"context.locals does not contain attribute '{name}', "
                f"it contains: [{', '.join(values)}]") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"can't set attribute '{name}', locals are read-only")


class Interrupted(KeyboardInterrupt):
    """A signal that ends the launch has arrived while code of a launch file ran."""


class _Configurations(dict):  # type: ignore[type-arg]
    """Launch configurations that note which names are looked up, for misspelt arguments."""

    def __init__(self, values: Any, names: Set[str]) -> None:
        super().__init__(values)
        self.names_looked_up = names

    def __contains__(self, name: Any) -> bool:
        self.names_looked_up.add(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.names_looked_up.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names_looked_up.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self.names_looked_up.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self.names_looked_up.add(name)
        return super().setdefault(name, default)

    # A reader of all of them knows all names. `dict(...)` and `{**...}` call __iter__ or keys.

    def _note_all(self) -> None:
        self.names_looked_up.update(super().keys())

    def __iter__(self) -> Iterator[Any]:
        self._note_all()
        return super().__iter__()

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def copy(self) -> Any:
        self._note_all()
        return super().copy()

    def keys(self) -> Any:
        self._note_all()
        return super().keys()

    def values(self) -> Any:
        self._note_all()
        return super().values()

    def items(self) -> Any:
        self._note_all()
        return super().items()


class LaunchContext:
    """Configurations, environment, locals, event handlers and the queue of events."""

    def __init__(
        self, *, argv: Optional[Iterable[str]] = None, noninteractive: bool = False,
    ) -> None:
        self.__argv = [] if argv is None else argv
        self.__noninteractive = noninteractive
        self._event_queue = EventQueue()
        self._event_handlers: Deque[BaseEventHandler] = collections.deque()
        self._completion_futures: List[asyncio.Future] = []
        self.__globals: Dict[str, Any] = {}
        self.__locals: Dict[str, Any] = {}
        self.__locals_stack: List[Dict[str, Any]] = []
        self.__combined_locals: Optional[Dict[str, Any]] = None
        self.__names_looked_up: Set[str] = set()
        self.__launch_configurations = _Configurations({}, self.__names_looked_up)
        self.__launch_configurations_stack: List[Dict[str, Any]] = []
        self.__environment_stack: List[Dict[str, str]] = []
        self._first_environment = dict(os.environ)
        self.__is_shutdown = False
        self.__is_failed = False
        self.__asyncio_loop: Optional[asyncio.AbstractEventLoop] = None
        self.__interruptible_depth = 0
        self.__held_starts: Optional[List[Coroutine]] = None
        self.__plan: Optional[Plan] = None
        self._has_timer_handler = False
        # That of the running launch service.
        self._guard: Optional[LaunchGuard] = None
        self.__logger = launch.logging.get_logger('launch.launch_context')

    @property
    def argv(self) -> Iterable[str]:
        """The command line that the launch service got."""
        return self.__argv

    @property
    def noninteractive(self) -> bool:
        """Whether no terminal sends SIGINT to the processes."""
        return self.__noninteractive

    @property
    def is_shutdown(self) -> bool:
        """Whether the launch ends."""
        return self.__is_shutdown

    def _set_is_shutdown(self, state: bool) -> None:
        self.__is_shutdown = state

    @property
    def _is_failed(self) -> bool:
        """Whether a process could not be started, or a component not be loaded."""
        return self.__is_failed

    def _set_is_failed(self) -> None:
        self.__is_failed = True

    @property
    def asyncio_loop(self) -> Optional[asyncio.AbstractEventLoop]:
        """The loop that runs the launch service; ``None`` while it does not run."""
        return self.__asyncio_loop

    def _set_asyncio_loop(self, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        self.__asyncio_loop = loop

    @property
    def plan(self) -> Optional[Plan]:
        """
        The plan of a dry run, else ``None``.

        With a plan, an action that would start or change something adds itself to the plan
        instead.
        """
        return self.__plan

    def _set_plan(self, plan: Optional[Plan]) -> None:
        self.__plan = plan

    def add_completion_future(self, completion_future: asyncio.Future) -> None:
        """Keep the launch service running until a future is done."""
        self._completion_futures.append(completion_future)

    # --- interruption -------------------------------------------------------------------

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """
        Let signals that end the launch interrupt the code within, as it may run for long.

        Does nothing in other threads than the main one, as signal handlers run there alone.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        depth = self.__interruptible_depth
        self.__interruptible_depth = depth + 1
        try:
            yield
        finally:
            self.__interruptible_depth = depth

    def _interrupt(self) -> None:
        """
        Interrupt code that may be interrupted; called by signal handlers.

        :raises Interrupted: if such code runs.
        """
        if self.__interruptible_depth > 0:
            raise Interrupted

    # --- starts of processes ------------------------------------------------------------

    def _start(self, start: Coroutine) -> None:
        """Run a coroutine that starts a process, after the event has been processed."""
        if self.__held_starts is not None:
            self.__held_starts.append(start)
        else:
            self.__asyncio_loop.create_task(start)

    def _hold_starts(self) -> None:
        """Hold starts back, so that an error in an event starts none of its processes."""
        self.__held_starts = []

    def _release_starts(self) -> None:
        held, self.__held_starts = self.__held_starts or [], None
        for start in held:
            self.__asyncio_loop.create_task(start)

    def _drop_starts(self) -> None:
        held, self.__held_starts = self.__held_starts or [], None
        for start in held:
            start.close()

    # --- locals and globals -------------------------------------------------------------

    def extend_globals(self, extensions: Dict[str, Any]) -> None:
        """Add values that stay."""
        self.__globals.update(extensions)
        self.__combined_locals = None

    def extend_locals(self, extensions: Dict[str, Any]) -> None:
        """Add values that stay until the event has been processed."""
        self.__locals.update(extensions)
        self.__combined_locals = None

    def _push_locals(self) -> None:
        self.__locals_stack.append(dict(self.__locals))

    def _pop_locals(self) -> None:
        if not self.__locals_stack:
            raise RuntimeError('locals stack unexpectedly empty')
        self.__locals = self.__locals_stack.pop()
        self.__combined_locals = None

    def get_locals_as_dict(self) -> Dict[str, Any]:
        """Return globals and locals."""
        if self.__combined_locals is None:
            self.__combined_locals = {**self.__globals, **self.__locals}
        return self.__combined_locals

    @property
    def locals(self) -> _Locals:  # noqa: A003
        """Globals and locals as attributes."""
        return _Locals(self.get_locals_as_dict())

    # --- environment --------------------------------------------------------------------

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of this process, which started processes inherit."""
        return os.environ

    def _push_environment(self) -> None:
        self.__environment_stack.append(dict(os.environ))

    def _pop_environment(self) -> None:
        if not self.__environment_stack:
            raise RuntimeError('environment stack unexpectedly empty')
        _replace_environment(self.__environment_stack.pop())

    def _reset_environment(self) -> None:
        _replace_environment(self._first_environment)

    # --- launch configurations ----------------------------------------------------------

    @property
    def launch_configurations(self) -> Dict[str, Any]:
        """Launch configurations: the arguments and variables of the launch."""
        return self.__launch_configurations

    def _push_launch_configurations(self) -> None:
        # This looks nothing up; a copy would.
        values = dict(dict.items(self.__launch_configurations))
        self.__launch_configurations_stack.append(values)

    def _pop_launch_configurations(self) -> None:
        if not self.__launch_configurations_stack:
            raise RuntimeError('launch_configurations stack unexpectedly empty')
        values = self.__launch_configurations_stack.pop()
        self.__launch_configurations = _Configurations(values, self.__names_looked_up)

    def _has_looked_up(self, name: str) -> bool:
        """Whether an action or a substitution has looked a launch configuration up."""
        return name in self.__names_looked_up

    # --- events -------------------------------------------------------------------------

    def would_handle_event(self, event: Event) -> bool:
        """Return whether an event has a handler."""
        return any(handler.matches(event) for handler in self._event_handlers)

    def register_event_handler(
        self, event_handler: BaseEventHandler, append: bool = False,
    ) -> None:
        """Add a handler; it gets events before the ones that are there, unless ``append``."""
        if append:
            self._event_handlers.append(event_handler)
        else:
            self._event_handlers.appendleft(event_handler)

    def unregister_event_handler(self, event_handler: BaseEventHandler) -> None:
        """
        Remove a handler.

        :raises ValueError: if it is not registered.
        """
        self._event_handlers.remove(event_handler)

    def emit_event_sync(self, event: Event) -> None:
        """Queue an event, in the thread of the launch service."""
        self.__logger.debug(f"emitting event synchronously: '{event.name}'")
        self._event_queue.put_nowait(event)

    async def emit_event(self, event: Event) -> None:
        """Queue an event."""
        self.__logger.debug(f"emitting event: '{event.name}'")
        await self._event_queue.put(event)

    def perform_substitution(self, substitution: Substitution) -> str:
        """Return the text of a substitution."""
        return substitution.perform(self)


def _replace_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
