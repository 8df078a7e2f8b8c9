"""Futures and tasks: results that come later, and callables that executors run."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from enum import Enum

from rclpy._imported_names import getter_of
from rclpy.impl.node_entity import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generator, Optional

    from rclpy.executors import Executor
else:
    __getattr__ = getter_of(__name__)


class _Waiting:
    """
    What a coroutine yields to whatever steps it: a wait for a future.

    A task of an executor takes the future from it. A task of asyncio takes it for a future of
    asyncio's own, by the attribute below; it must be of the loop that runs.
    """

    __slots__ = ('future', '_asyncio_future_blocking', '_wake_ups', '_error')

    def __init__(self, future: Future) -> None:
        self.future = future
        self._asyncio_future_blocking = True

    def get_loop(self) -> Any:
        """Return the loop that runs."""
        import asyncio
        return asyncio.get_running_loop()

    def add_done_callback(self, callback: Callable[[Any], Any], *, context: Any = None) -> None:
        """Let the loop call back when the future is done or cancelled, in any thread."""
        self._error: Optional[BaseException] = None
        loop = self.get_loop()
        # One element, which the first one to wake takes: the future's thread or a cancellation.
        self._wake_ups = [lambda: loop.call_soon_threadsafe(callback, self, context=context)]
        if not self.future._add_waker(self._wake_up):
            self._wake_up()

    def _wake_up(self) -> bool:
        try:
            wake_up = self._wake_ups.pop()
        except IndexError:
            return False
        try:
            wake_up()
        except RuntimeError:
            # The loop is closed, and its tasks with it.
            pass
        return True

    def cancel(self, msg: Any = None) -> bool:
        """End the wait, but not the future: another coroutine may await it too."""
        import asyncio
        if not self._wake_ups:
            return False
        self._error = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self.future._remove_waker(self._wake_up)
        return self._wake_up()

    def result(self) -> None:
        """Raise if the wait was cancelled."""
        if self._error is not None:
            raise self._error


def _returns_coroutine(result: Any) -> bool:
    """Return whether a handler's result must be stepped."""
    return hasattr(result, 'send') and hasattr(result, '__await__')


class FutureState(Enum):
    """What has become of a future."""

    PENDING = 'PENDING'
    CANCELLED = 'CANCELLED'
    FINISHED = 'FINISHED'


class Future(Generic):
    """
    The result of something that has not finished yet.

    A coroutine that an executor or asyncio runs may ``await`` it. All methods are thread-safe.
    """

    def __init__(self, *, executor: Optional[Executor] = None) -> None:
        """
        Create an unfinished future.

        :param executor: The executor that runs the done callbacks. Without one, the thread
            that finishes the future runs them.
        """
        self._done = False
        self._cancelled = False
        self._result: Any = None
        self._exception: Optional[Exception] = None
        self._exception_fetched = False
        self._callbacks: Optional[list] = None
        self._lock = threading.Lock()
        self._executor: Optional[weakref.ref] = None
        self._wakers: Optional[list] = None
        if executor is not None:
            self._set_executor(executor)

    def __del__(self) -> None:
        if getattr(self, '_exception', None) is not None and not self._exception_fetched:
            print(
                'The following exception was never retrieved: ' + str(self._exception),
                file=sys.stderr)

    def __await__(self) -> Generator[_Waiting, None, Any]:
        # The future is yielded, so that the task is stepped only when it is done.
        while not self._done and not self._cancelled:
            yield _Waiting(self)
        return self.result()

    def cancel(self) -> None:
        """Cancel the future, unless it is done, and schedule its done callbacks."""
        with self._lock:
            if self._done:
                return
            self._cancelled = True
        self._schedule_or_invoke_done_callbacks()

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._cancelled

    def done(self) -> bool:
        """Return whether the future has a result or an exception."""
        return self._done

    def result(self) -> Any:
        """
        Return the result, or ``None`` while there is none.

        :raises: the exception that was set instead of a result.
        """
        if self._exception is not None:
            self._exception_fetched = True
            raise self._exception
        return self._result

    def exception(self) -> Optional[Exception]:
        """Return the exception that was set, or ``None``."""
        self._exception_fetched = True
        return self._exception

    def set_result(self, result: Any) -> None:
        """Set the result and schedule the done callbacks."""
        with self._lock:
            self._result = result
            self._done = True
            self._cancelled = False
        self._schedule_or_invoke_done_callbacks()

    def set_exception(self, exception: Exception) -> None:
        """Set an exception in place of a result and schedule the done callbacks."""
        with self._lock:
            self._exception = exception
            self._exception_fetched = False
            self._done = True
            self._cancelled = False
        self._schedule_or_invoke_done_callbacks()

    @property
    def _state(self) -> FutureState:
        if self._done:
            return FutureState.FINISHED
        return FutureState.CANCELLED if self._cancelled else FutureState.PENDING

    def _schedule_or_invoke_done_callbacks(self) -> None:
        with self._lock:
            callbacks = self._callbacks
            self._callbacks = None
            wakers = self._wakers
            self._wakers = None
        if wakers:
            for waker in wakers:
                waker()
        if not callbacks:
            return
        executor = self._executor() if self._executor is not None else None
        if executor is not None:
            for callback in callbacks:
                executor.create_task(callback, self)
        else:
            for callback in callbacks:
                self._invoke_done_callback(callback)

    def _add_waker(self, waker: Callable[[], Any]) -> bool:
        """
        Add a function that is called when the future is done or cancelled.

        :returns: ``False`` if that is so already.
        """
        with self._lock:
            if self._done or self._cancelled:
                return False
            if self._wakers is None:
                self._wakers = [waker]
            elif waker not in self._wakers:
                # An executor adds itself at every turn.
                self._wakers.append(waker)
            return True

    def _remove_waker(self, waker: Callable[[], Any]) -> None:
        """Remove a function that :meth:`_add_waker` has added, if it is still there."""
        with self._lock:
            if self._wakers is not None and waker in self._wakers:
                self._wakers.remove(waker)

    def _invoke_done_callback(self, callback: Callable[[Future], Any]) -> None:
        try:
            callback(self)
        except Exception as error:
            # No executor is there to raise it, and the setter of the result is not to blame.
            warnings.warn(f'Unhandled exception in done callback: {error}')

    def _set_executor(self, executor: Optional[Executor]) -> None:
        """Set the executor that runs the done callbacks."""
        with self._lock:
            self._executor = None if executor is None else weakref.ref(executor)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """
        Add a callback that gets this future when it is done or cancelled.

        It is called at once if that is so already.
        """
        with self._lock:
            if not self._done and not self._cancelled:
                if self._callbacks is None:
                    self._callbacks = [callback]
                else:
                    self._callbacks.append(callback)
                return
            executor = self._executor() if self._executor is not None else None
        if executor is not None:
            executor.create_task(callback, self)
        else:
            # The caller gets what it raises.
            callback(self)

    def remove_done_callback(self, callback: Callable[[Future], Any]) -> bool:
        """
        Remove a callback that :meth:`add_done_callback` has added, once.

        :returns: whether it was there.
        """
        with self._lock:
            if self._callbacks is None or callback not in self._callbacks:
                return False
            self._callbacks.remove(callback)
            return True


class Task(Future):
    """
    A callable or coroutine that an executor runs; its future is the task itself.

    A coroutine is stepped by each call of the task, until it returns.
    """

    def __init__(
        self, handler: Callable[..., Any], args: Any = None, kwargs: Any = None,
        executor: Optional[Executor] = None,
    ) -> None:
        """
        Create a task.

        :param handler: A function, a coroutine function, or a coroutine.
        :param args: Positional arguments of the handler.
        :param kwargs: Keyword arguments of the handler.
        :param executor: The executor that runs the done callbacks.
        """
        super().__init__(executor=executor)
        self._args = args if args is not None else ()
        self._kwargs = kwargs if kwargs is not None else {}
        self._handler: Any = handler
        self._started = False
        # The future that the coroutine awaits, if it is one of ours.
        self._awaited: Optional[Future] = None
        # One thread at a time steps the handler. A second one skips it.
        self._task_lock = threading.Lock()

    def __call__(self) -> None:
        """Run or step the handler, unless it is done or another thread is at it."""
        if self._done or self._cancelled or not self._task_lock.acquire(blocking=False):
            return
        try:
            if self._done:
                return
            handler = self._handler
            if not self._started:
                self._started = True
                if not _returns_coroutine(handler):
                    try:
                        result = handler(*self._args, **self._kwargs)
                    except Exception as error:
                        self.set_exception(error)
                        self._release_handler()
                        return
                    if not _returns_coroutine(result):
                        self.set_result(result)
                        self._release_handler()
                        return
                    handler = self._handler = result
            try:
                awaited = handler.send(None)
                self._awaited = awaited.future if type(awaited) is _Waiting else None
            except StopIteration as stop:
                self.set_result(stop.value)
                self._release_handler()
            except Exception as error:
                self.set_exception(error)
                self._release_handler()
        finally:
            self._task_lock.release()

    def _release_handler(self) -> None:
        # A task may outlive its run in a list; its arguments need not.
        self._handler = None
        self._args = ()
        self._kwargs = {}

    def executing(self) -> bool:
        """Return whether a thread runs the handler now."""
        return self._task_lock.locked()
