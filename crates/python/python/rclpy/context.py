"""Contexts: what ``rclpy.init`` initializes, and nodes live in."""

from __future__ import annotations

import sys
import threading
import weakref

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.exceptions import NotInitializedException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional
else:
    __getattr__ = getter_of(__name__)

g_logging_configure_lock = threading.Lock()
g_logging_ref_count = 0


class Context:
    """
    One participant of the ROS graph, with its arguments and its domain.

    It can be used as a context manager, which initializes it and shuts it down.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._callbacks: List[Any] = []
        self._logging_initialized = False
        self.__context: Optional[_native.Context] = None

    @property
    def handle(self) -> Optional[_native.Context]:
        """The handle of the implementation, or ``None`` before :meth:`init`."""
        return self.__context

    def destroy(self) -> None:
        """Destroy the handle, after :meth:`shutdown`."""
        if self.__context is not None:
            self.__context.destroy_when_not_in_use()

    def init(
        self, args: Optional[List[str]] = None, *, initialize_logging: bool = True,
        domain_id: Optional[int] = None,
    ) -> None:
        """
        Initialize the context.

        :param args: The command line; ``None`` stands for ``sys.argv``.
        :param initialize_logging: Apply the logging arguments of the command line.
        :param domain_id: The domain; ``None`` stands for ROS_DOMAIN_ID, else 0.
        :raises RuntimeError: if the context is initialized already, or ``domain_id`` is
            negative.
        """
        global g_logging_ref_count
        if domain_id is not None and domain_id < 0:
            raise RuntimeError(
                f'domain_id {domain_id} is negative; use 0 to 232')
        if isinstance(args, str):
            raise TypeError(f'args is a list of words, got the text {args!r}')
        with self._lock:
            if self.__context is not None and not self.__context.is_destroyed:
                raise RuntimeError(
                    'Context.init() must only be called once; create another Context')
            self.__context = _native.Context(sys.argv if args is None else args, domain_id)
            if initialize_logging and not self._logging_initialized:
                with g_logging_configure_lock:
                    g_logging_ref_count += 1
                    if g_logging_ref_count == 1:
                        _native.configure_logging(self.__context)
                self._logging_initialized = True

    def ok(self) -> bool:
        """Return whether the context is initialized and not shut down."""
        context = self.__context
        return context is not None and context.ok()

    def _require_handle(self) -> _native.Context:
        context = self.__context
        if context is None:
            raise NotInitializedException()
        return context

    def _call_on_shutdown_callbacks(self, error: Optional[BaseException]) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for reference in callbacks:
            callback = reference()
            if callback is not None:
                try:
                    callback()
                except BaseException as raised:
                    # The others end executors and rates, which would wait for ever.
                    error = error or raised
        if error is not None:
            raise error

    def shutdown(self) -> None:
        """
        Shut the context down: all spinning ends.

        :raises RuntimeError: if it is not initialized, or was shut down already.
        """
        if self.__context is None:
            raise RuntimeError('Context must be initialized before it can be shutdown')
        try:
            with self.__context:
                self._shut_down(self.__context)
        finally:
            self._logging_fini()

    def _shut_down(self, context: _native.Context) -> None:
        """Shut the handle down, and run all callbacks. Raise the first error of theirs."""
        was_ok = context.ok()
        error = None
        try:
            context.shutdown()
        except BaseException as raised:
            if not was_ok:
                # A signal or another call has shut it down.
                raise
            error = raised
        self._call_on_shutdown_callbacks(error)

    def try_shutdown(self) -> None:
        """Shut the context down, unless that has happened."""
        context = self.__context
        if context is not None and not context.is_destroyed:
            try:
                with self._lock:
                    if context.ok():
                        with context:
                            self._shut_down(context)
            finally:
                self._logging_fini()

    def on_shutdown(self, callback: Callable[[], None]) -> None:
        """
        Add a callback of :meth:`shutdown`. Bound methods are held weakly.

        It is called at once if the context is shut down. Ctrl-C does not call it.

        :raises TypeError: if ``callback`` cannot be called.
        """
        if not callable(callback):
            raise TypeError(f'callback should be a callable, got {type(callback).__name__}')
        if self.__context is not None and not self.__context.ok():
            callback()
            return
        with self._lock:
            if hasattr(callback, '__self__') and hasattr(callback, '__func__'):
                self._callbacks.append(weakref.WeakMethod(callback, self._remove_callback))
            else:
                self._callbacks.append(lambda: callback)

    def _remove_callback(self, weak_method: Any) -> None:
        try:
            self._callbacks.remove(weak_method)
        except ValueError:
            pass

    def _logging_fini(self) -> None:
        global g_logging_ref_count
        with self._lock:
            if not self._logging_initialized:
                return
            self._logging_initialized = False
        with g_logging_configure_lock:
            g_logging_ref_count -= 1

    def get_domain_id(self) -> int:
        """
        Return the domain of the context.

        :raises RuntimeError: if it is not initialized.
        """
        if self.__context is None:
            raise RuntimeError('Context must be initialized before it can have a domain id')
        with self.__context:
            return self.__context.get_domain_id()

    def __enter__(self) -> Context:
        # A sub-class may have been initialized by hand before.
        if self.__context is None:
            self.init()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.try_shutdown()
