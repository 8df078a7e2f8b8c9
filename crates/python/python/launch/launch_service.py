"""Launch service: executes launch descriptions, until nothing is left to do."""

from __future__ import annotations

import asyncio
import atexit
import collections.abc
import contextlib
import logging
import signal
import threading
import traceback

import launch.logging
from launch._error_text import describe_error
from launch.event_handlers import OnIncludeLaunchDescription, OnShutdown
from launch.event_queue import EventQueue
from launch.events import IncludeLaunchDescription, Shutdown
from launch.launch_context import Interrupted, LaunchContext
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_guard import LaunchGuard
from launch.utilities import (
    AsyncSafeSignalManager, is_a_subclass, visit_all_entities_and_collect_futures,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any, Callable, ContextManager, Coroutine, Iterable, Iterator, List, Optional, Tuple,
    )

    from launch.event import Event
    from launch.launch_description import LaunchDescription

_thread_loops = threading.local()


def get_event_loop_of_thread() -> asyncio.AbstractEventLoop:
    """Return the loop that runs; else the one of this thread, which is made once."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        pass
    loop = getattr(_thread_loops, 'loop', None)
    if loop is None or loop.is_closed():
        loop = _thread_loops.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        # Not at the end of a run: the program may use it as well.
        atexit.register(_close_loop, loop)
    return loop


def _close_loop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_running():
        loop.close()


class LaunchService:
    """Executes launch descriptions."""

    def __init__(
        self,
        *,
        argv: Optional[Iterable[str]] = None,
        noninteractive: bool = False,
        debug: bool = False,
    ) -> None:
        """
        Make a service.

        :param argv: The command line, for launch files that read it from the context.
        :param noninteractive: Whether Ctrl-C does not reach the processes through a terminal.
        :param debug: Log debug messages, and use asyncio's debug mode.
        """
        launch.logging.launch_config.level = logging.DEBUG if debug else logging.INFO
        self.__debug = debug
        self.__logger = launch.logging.get_logger('launch')
        self.__context = LaunchContext(
            argv=[] if argv is None else argv, noninteractive=noninteractive)
        self.__context.register_event_handler(OnIncludeLaunchDescription())
        self.__context.register_event_handler(OnShutdown(on_shutdown=self.__on_shutdown))
        self._entity_future_pairs: List[Tuple[LaunchDescriptionEntity, asyncio.Future]] = []
        self.__loop_lock = threading.RLock()
        self.__loop: Optional[asyncio.AbstractEventLoop] = None
        self.__task: Optional[asyncio.Task] = None
        self.__shutting_down = False
        self.__interrupts = 0

    @property
    def context(self) -> LaunchContext:
        """The launch context."""
        return self.__context

    @property
    def event_loop(self) -> Optional[asyncio.AbstractEventLoop]:
        """The loop that runs the service; ``None`` while it does not run."""
        return self.__loop

    @property
    def task(self) -> Optional[asyncio.Task]:
        """The task that runs the service."""
        return self.__task

    # --- from any thread ----------------------------------------------------------------

    def emit_event(self, event: Event) -> None:
        """Queue an event. Thread-safe; from another thread the loop queues it later."""
        with self.__loop_lock:
            if self.__loop is None or self.__is_own_thread():
                self.__context.emit_event_sync(event)
            else:
                # Waiting for the loop could be for ever: it may wait for this lock.
                self.__loop.call_soon_threadsafe(self.__context.emit_event_sync, event)

    def include_launch_description(self, launch_description: LaunchDescription) -> None:
        """Visit a launch description when the service runs. Thread-safe."""
        self.emit_event(IncludeLaunchDescription(launch_description))

    def shutdown(self, force_sync: bool = False) -> Optional[Coroutine]:
        """
        End the launch, if it runs. Thread-safe; from another thread the loop does it later.

        :param force_sync: Queue the event at once; needed in signal handlers.
        :returns: a coroutine to await if it is called from the loop, else ``None``.
        """
        with self.__loop_lock:
            if self.__loop is None:
                return None
            reason = 'LaunchService.shutdown() called'
            if self.__is_own_thread():
                return self._shutdown(
                    reason=reason, due_to_sigint=False, force_sync=force_sync)
            self.__loop.call_soon_threadsafe(lambda: self._shutdown(
                reason=reason, due_to_sigint=False, force_sync=True))
            return None

    def _shutdown(
        self, *, reason: str, due_to_sigint: bool, force_sync: bool = False,
    ) -> Optional[Coroutine]:
        """Shut down, in the thread of the loop."""
        result = None
        if not self.__shutting_down:
            event = Shutdown(reason=reason, due_to_sigint=due_to_sigint)
            if force_sync:
                self.__context.emit_event_sync(event)
            else:
                result = self.__context.emit_event(event)
        self.__set_shutting_down()
        return result

    def __is_own_thread(self) -> bool:
        # Only the main thread can run it.
        return threading.current_thread() is threading.main_thread()

    def __on_shutdown(self, event: Event, context: LaunchContext) -> None:
        self.__set_shutting_down()

    def __set_shutting_down(self) -> None:
        self.__shutting_down = True
        self.__context._set_is_shutdown(True)

    # --- events -------------------------------------------------------------------------

    async def _process_one_event(self) -> None:
        self.__process_event(await self.__context._event_queue.get())

    def __process_event(self, event: Event) -> None:
        self.__logger.debug(f"processing event: '{event}'")
        errors: List[Exception] = []
        for handler in tuple(self.__context._event_handlers):
            if not handler.matches(event):
                continue
            self.__logger.debug(f"processing event: '{event}' ✓ '{handler}'")
            self.__context._push_locals()
            # An error in a description starts none of its processes.
            self.__context._hold_starts()
            try:
                with self.__interruptible(event):
                    pairs = self.__visit(handler.handle(event, self.__context))
            except Interrupted:
                # The loop handles the signal next.
                self.__context._drop_starts()
                self.__logger.warning('interrupted while launch files were evaluated')
                continue
            except Exception as error:
                self.__context._drop_starts()
                if not is_a_subclass(event, Shutdown):
                    raise
                # The other handlers end the processes.
                errors.append(error)
                continue
            except BaseException:
                self.__context._drop_starts()
                raise
            finally:
                self.__context._pop_locals()
            self.__context._release_starts()
            self._entity_future_pairs.extend(pairs)
        self.__raise_first(errors)

    def __raise_first(self, errors: List[Any]) -> None:
        """Raise the first error, if there is one, and log the others."""
        for error in errors[1:]:
            self.__logger.error(describe_error(error))
        if errors:
            raise errors[0]

    def __interruptible(self, event: Event) -> ContextManager[None]:
        # Of other events, commands and functions of launch files can be interrupted.
        if isinstance(event, IncludeLaunchDescription):
            return self.__context._interruptible()
        return contextlib.nullcontext()

    def __visit(self, entities: Any) -> List[Tuple[LaunchDescriptionEntity, asyncio.Future]]:
        if not isinstance(entities, collections.abc.Iterable):
            entities = (entities,)
        pairs = []
        for entity in entities:
            if entity is None:
                continue
            if not is_a_subclass(entity, LaunchDescriptionEntity):
                raise RuntimeError(
                    f"expected a LaunchDescriptionEntity from event_handler, got '{entity}'")
            pairs.extend(visit_all_entities_and_collect_futures(entity, self.__context))
        return pairs

    def _is_idle(self) -> bool:
        self._entity_future_pairs = [
            pair for pair in self._entity_future_pairs if not pair[1].done()]
        self.__context._completion_futures = [
            future for future in self.__context._completion_futures if not future.done()]
        if self._entity_future_pairs or self.__context._completion_futures:
            return False
        queue = self.__context._event_queue
        # Descendants of ended processes may write without an end.
        return queue.has_only_output() if self.__shutting_down else queue.empty()

    # --- signals ------------------------------------------------------------------------

    def __on_sigint(self, number: int) -> None:
        self.__interrupts += 1
        if self.__interrupts == 1:
            self.__logger.warning('user interrupted with ctrl-c (SIGINT)')
            # The processes have process groups of their own, which Ctrl-C does not reach.
            if not self.__shutting_down and not self.__context.noninteractive:
                self.__context._guard.signal_all(signal.SIGINT)
            self._shutdown(reason='ctrl-c (SIGINT)', due_to_sigint=True, force_sync=True)
            return
        next_signal = signal.SIGTERM if self.__interrupts == 2 else signal.SIGKILL
        self.__logger.warning(
            f'user interrupted with ctrl-c (SIGINT) again, sending {next_signal.name} to all '
            'processes')
        self.__context._guard.signal_all(next_signal)

    def __on_sigterm(self, number: int) -> None:
        name = signal.Signals(number).name
        self.__logger.warning(f'received {name}, ending all processes')
        self._shutdown(reason=name, due_to_sigint=False, force_sync=True)

    # --- loop ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def __running(self) -> Iterator[asyncio.AbstractEventLoop]:
        """Make this the running service, with its signal handlers, for a while."""
        loop = asyncio.get_running_loop()
        with self.__loop_lock:
            if self.__loop is not None:
                raise RuntimeError('LaunchService cannot be run multiple times concurrently.')
            if self.__debug:
                loop.set_debug(True)
            self.__loop = loop
            self.__task = asyncio.current_task(loop)
            self.__interrupts = 0
            self.__context._set_asyncio_loop(loop)
            # The queue of an earlier run may belong to another loop.
            waiting, self.__context._event_queue = self.__context._event_queue, EventQueue()
            while not waiting.empty():
                self.__context._event_queue.put_nowait(waiting.get_nowait())
            self.__context._guard = LaunchGuard()
        try:
            python_handlers = _signals_without_default(self.__context._interrupt)
            with AsyncSafeSignalManager(loop) as manager, python_handlers:
                manager.handle(signal.SIGINT, self.__on_sigint)
                for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
                    manager.handle(number, self.__on_sigterm)
                yield loop
        finally:
            with self.__loop_lock:
                self.__context._guard.close()
                self.__context._set_asyncio_loop(None)
                self.__loop = None
                self.__shutting_down = False

    async def run_async(self, *, shutdown_when_idle: bool = True) -> int:
        """
        Run until the launch has ended, in the running loop of the main thread.

        :param shutdown_when_idle: End when nothing is left to do.
        :returns: 0, or 1 after an error in a description, an event handler or a callback.
        :raises RuntimeError: in another thread, or if it runs already.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError('LaunchService can only be run in the main thread.')
        with self.__running() as loop:
            launch.logging.log_launch_config(logger=self.__logger)
            return await self.__run_events(loop, shutdown_when_idle)

    async def __run_events(
        self, loop: asyncio.AbstractEventLoop, shutdown_when_idle: bool,
    ) -> int:
        return_code = 0

        def handle_exception(loop: asyncio.AbstractEventLoop, context: Any) -> None:
            nonlocal return_code
            return_code = 1
            loop.default_exception_handler(context)

        loop.set_exception_handler(handle_exception)
        event_task: Optional[asyncio.Task] = None
        try:
            while True:
                try:
                    is_idle = self._is_idle()
                    if is_idle and self.__shutting_down:
                        return return_code
                    if is_idle and shutdown_when_idle:
                        await self._shutdown(reason='idle', due_to_sigint=False)
                        continue
                    if event_task is None or event_task.done():
                        event_task = loop.create_task(self._process_one_event())
                    await self.__wait(event_task)
                except KeyboardInterrupt:
                    continue
                except asyncio.CancelledError:
                    self.__logger.error('run task was canceled')
                    return 1
                except Exception as error:
                    return_code = 1
                    self.__logger.debug(traceback.format_exc())
                    text = (
                        'Caught exception in launch (see debug for traceback): '
                        f'{describe_error(error)}')
                    self.__logger.error(text)
                    shutdown = self._shutdown(reason=text, due_to_sigint=False)
                    if shutdown is not None:
                        await shutdown
        finally:
            if event_task is not None and not event_task.done():
                event_task.cancel()
            loop.set_exception_handler(None)

    async def __wait(self, event_task: asyncio.Task) -> None:
        """Wait for an event, or the end of something while there is none; raise its error."""
        futures: List[asyncio.Future] = [event_task]
        if self.__context._event_queue.empty():
            futures.extend(future for _, future in self._entity_future_pairs)
            futures.extend(self.__context._completion_futures)
        done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        self.__raise_first([
            future.exception() for future in done
            if not future.cancelled() and future.exception() is not None])

    def run(self, *, shutdown_when_idle: bool = True) -> int:
        """
        Run until the launch has ended, in the main thread. Blocks.

        :param shutdown_when_idle: End when nothing is left to do.
        :returns: 0, or 1 after an error.
        """
        loop = get_event_loop_of_thread()
        task = loop.create_task(self.run_async(shutdown_when_idle=shutdown_when_idle))
        while True:
            try:
                return loop.run_until_complete(task)
            except KeyboardInterrupt:
                continue


@contextlib.contextmanager
def _signals_without_default(interrupt: Callable[[], None]) -> Iterator[None]:
    """
    Give the handled signals a handler of Python that only calls a function.

    Without a handler, Python does not write a signal's number to the wakeup descriptor.
    Handlers that a program has set stay.
    """
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        handler = signal.getsignal(number)
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            before[number] = handler
            signal.signal(number, lambda number, frame: interrupt())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
