"""
Executors: the threads that wait for entities and run their callbacks.

An executor registers the entities of its nodes once with a poller of the native module, and
again only when they change. A callback is a plain call; only a coroutine gets a task. `spin` of
the single-threaded executor runs such calls in the native module (`src/spin.rs`).
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from time import monotonic

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.exceptions import InvalidHandle, NotInitializedException
from rclpy.impl.executor_entry import Entry, HandleTaker, OwnTaker, apply, execute_taken
from rclpy.task import Future, Task
from rclpy.utilities import get_default_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

    from rclpy.context import Context
    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)


async def await_or_execute(callback: Any, *args: Any) -> Any:
    """Call a function, or await a coroutine function, and return its result."""
    result = callback(*args)
    if _is_coroutine(result):
        return await result
    return result


# The members that take from timers, subscriptions, guard conditions, clients, services and
# waitables, in the order in which a turn looks at them.
_TAKERS = (
    '_take_timer', '_take_subscription', '_take_guard_condition', '_take_client', '_take_service',
    '_take_waitable')


class TimeoutException(Exception):
    """The time-out has passed."""


class ShutdownException(Exception):
    """The executor is shut down."""


class ExternalShutdownException(Exception):
    """The context was shut down, but not by the executor."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or ('The context was shut down while an executor was spinning',)))


class ConditionReachedException(Exception):
    """The condition for which an executor spins is true."""


def _is_coroutine(result: Any) -> bool:
    return hasattr(result, 'send') and hasattr(result, '__await__')


class _ExecutorTask(Task):
    """A task that goes back to its executor until it is done."""

    def __init__(
        self, handler: Any, args: Any, kwargs: Any, executor: Executor,
        node: Optional[Node] = None,
    ) -> None:
        super().__init__(handler, args, kwargs, executor)
        self._owner = executor
        self._node = node

    def __call__(self) -> None:
        super().__call__()
        if self._done or self._cancelled:
            return
        awaited = self._awaited
        self._owner._add_task(self)
        if awaited is None or not awaited._add_waker(self._owner.wake):
            self._owner.wake()

    def _can_step(self) -> bool:
        awaited = self._awaited
        return awaited is None or awaited._done or awaited._cancelled or self._cancelled


class Executor:
    """
    Base of the executors; it may be subclassed.

    A subclass calls :meth:`wait_for_ready_callbacks` and runs the tasks that it returns. It
    implements :meth:`spin_once` and :meth:`spin_once_until_future_complete`. An executor also
    works as a context manager that shuts it down.
    """

    def __init__(self, *, context: Optional[Context] = None) -> None:
        """
        Create an executor without nodes.

        :param context: The context of its nodes; ``None`` stands for the default one.
        :raises NotInitializedException: if the context is not initialized.
        :raises RCLError: if the context is shut down.
        """
        super().__init__()
        self._context = get_default_context() if context is None else context
        handle = self._context.handle
        if handle is None:
            raise NotInitializedException('an executor needs an initialized context')
        self._nodes: Dict[Node, None] = {}
        self._nodes_lock = threading.RLock()
        self._is_shutdown = False
        self._shutdown_lock = threading.Lock()
        self._poller = _native.Poller(handle)
        self._is_context_ok = handle.ok
        # Whether a turn may wait for entities alone when nothing else is to be done.
        self._has_short_turns = True
        self._tasks: List[_ExecutorTask] = []
        self._tasks_lock = threading.Lock()
        # What may run now, in order: tasks, and entries that the poller found ready.
        self._ready: Deque[Any] = deque()
        # Ready entries whose callback group is busy. The poller does not have them meanwhile.
        self._blocked: List[Entry] = []
        self._entries: Dict[Any, Entry] = {}
        # Set by every wake-up: the nodes' entities may have changed.
        self._is_stale = True
        # The versions of the nodes' entities that the poller has, and their nodes if chosen.
        self._synchronized: Optional[List[int]] = None
        # Waitables whose handles may differ at every turn.
        self._dynamic: List[Entry] = []
        # The threads that look for something to run. Only they need to be woken.
        self._waiters: set = set()
        # Whether tasks were queued last; then it is the entities' turn.
        self._tasks_ran = False
        # The members that an own executor may override. Then no callback runs without them.
        overridden = {
            name for name in (
                '_make_handler', '_wait_for_ready_callbacks', 'can_execute',
                'wait_for_ready_callbacks', *_TAKERS)
            if getattr(type(self), name) is not getattr(Executor, name)}
        self._is_customized = bool(overridden)
        self._own_takers = overridden.intersection(_TAKERS)
        self._has_own_iterator = '_wait_for_ready_callbacks' in overridden
        self._own_iterator: Any = None
        self._context.on_shutdown(self.wake)

    @property
    def context(self) -> Context:
        """The context of the nodes."""
        return self._context

    # --- nodes and tasks

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task:
        """
        Let the executor run a function, a coroutine function or a coroutine.

        :returns: the task, which is also the future of the result.
        """
        task = _ExecutorTask(callback, args, kwargs, self)
        self._add_task(task)
        self.wake()
        return task

    def create_future(self) -> Future:
        """Create a future whose done callbacks the executor runs, as later releases do."""
        return Future(executor=self)

    def _add_task(self, task: _ExecutorTask) -> None:
        with self._tasks_lock:
            self._tasks.append(task)

    def add_node(self, node: Node) -> bool:
        """
        Add a node; it leaves its other executor.

        :returns: ``False`` if it is there already.
        """
        with self._nodes_lock:
            if node in self._nodes:
                return False
            self._nodes[node] = None
        node.executor = self
        self.wake()
        return True

    def remove_node(self, node: Node) -> None:
        """Remove a node; nothing happens if it is not there."""
        with self._nodes_lock:
            if node not in self._nodes:
                return
            del self._nodes[node]
        self.wake()

    def get_nodes(self) -> List[Node]:
        """Return the nodes."""
        with self._nodes_lock:
            return list(self._nodes)

    def wake(self) -> None:
        """End the wait in progress, so that changes count. From any thread."""
        self._is_stale = True
        # A wake-up that nobody waits for would end the next wait before it looks at the sockets.
        if self._waiters and not self._is_shutdown:
            self._poller.wake()

    def shutdown(self, timeout_sec: Optional[float] = None) -> bool:
        """
        Stop the executor: spinning ends, and its nodes leave it.

        :param timeout_sec: Longest wait for callbacks that run in other threads; ``None`` and
            negative numbers stand for "for ever".
        :returns: ``False`` on time-out.
        """
        with self._shutdown_lock:
            if not self._is_shutdown:
                self._is_shutdown = True
                self._is_stale = True
                self._poller.wake()
        if not self._wait_for_callbacks(timeout_sec):
            return False
        with self._nodes_lock:
            self._nodes.clear()
        self._ready.clear()
        self._blocked.clear()
        self._entries = {}
        self._dynamic = []
        self._synchronized = None
        self._poller.close()
        return True

    def _wait_for_callbacks(self, timeout_sec: Optional[float]) -> bool:
        """Wait for the callbacks in other threads."""
        return True

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.shutdown()

    # --- spinning

    def spin(self) -> None:
        """Run callbacks until the context or the executor is shut down."""
        while self._context.ok() and not self._is_shutdown:
            self.spin_once()

    def spin_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """
        Run callbacks until a future is done or cancelled.

        :param timeout_sec: Longest time; ``None`` and negative numbers stand for "for ever".
            It is no error when it has passed.
        """
        self._wake_when_done(future)
        deadline = None
        if timeout_sec is not None and timeout_sec >= 0:
            deadline = monotonic() + timeout_sec
        while (self._context.ok() and not future.done() and not future.cancelled()
               and not self._is_shutdown):
            if deadline is None:
                self.spin_once_until_future_complete(future, None)
                continue
            left = deadline - monotonic()
            self.spin_once_until_future_complete(future, max(left, 0.0))
            if left <= 0:
                return

    def _wake_when_done(self, future: Any) -> None:
        if isinstance(future, Future):
            future._add_waker(self.wake)
        else:
            # Another library's future, which calls back at once if it is done.
            future.add_done_callback(lambda _: self.wake())

    def spin_once(self, timeout_sec: Optional[float] = None) -> None:
        """
        Wait for one callback and run it.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        """
        raise NotImplementedError()

    def spin_once_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """Wait for one callback and run it, or return when a future is done."""
        raise NotImplementedError()

    def can_execute(self, entity: Any) -> bool:
        """Return whether an entity's callback group lets its callback run now."""
        return entity.callback_group is None or entity.callback_group.can_execute(entity)

    def wait_for_ready_callbacks(
        self, timeout_sec: Optional[float] = None, nodes: Optional[List[Node]] = None,
        condition: Optional[Callable[[], bool]] = None,
    ) -> Tuple[Task, Any, Optional[Node]]:
        """
        Wait for one callback that may run.

        The callback's data is taken, and its group counts it as running. So call the task
        that is returned, in any thread.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :param nodes: The nodes to wait for; ``None`` stands for all nodes of the executor.
        :param condition: A function that ends the wait by returning ``True``.
        :returns: the task, its entity and its node; the last two are ``None`` for a task of
            :meth:`create_task`.
        :raises TimeoutException: if the time-out has passed.
        :raises ShutdownException: if the executor is shut down.
        :raises ExternalShutdownException: if the context is shut down.
        :raises ConditionReachedException: if ``condition`` is true.
        """
        if not self._has_own_iterator:
            return self._next_task(timeout_sec, nodes, condition)
        while True:
            if self._own_iterator is None:
                self._own_iterator = self._wait_for_ready_callbacks(timeout_sec, nodes, condition)
            try:
                return next(self._own_iterator)
            except StopIteration:
                self._own_iterator = None

    def _next_task(
        self, timeout_sec: Optional[float], nodes: Optional[List[Node]],
        condition: Optional[Callable[[], bool]],
    ) -> Tuple[Task, Any, Optional[Node]]:
        item = self._next(timeout_sec, condition, nodes)
        if type(item) is not tuple:
            return item, None, item._node
        entry, args = item

        async def execute() -> None:
            result = self._invoke(entry, args)
            if result is not None and _is_coroutine(result):
                await result

        handler = self._make_handler(entry.entity, entry.node, lambda entity: execute)
        return handler, entry.entity, entry.node

    def _make_handler(
        self, entity: Any, node: Optional[Node], take_from_wait_list: Callable[[Any], Any],
    ) -> Task:
        """
        Make the task of a ready entity; an own executor may override it.

        :param take_from_wait_list: Gets the entity and returns a function of a coroutine, which
            calls back with the data that was taken, or ``None``.
        """
        async def handle() -> None:
            execute = take_from_wait_list(entity)
            if execute is not None:
                await execute()

        return _ExecutorTask(handle, (), None, self, node)

    def _take_ready(self, entity: Any) -> Any:
        """
        Take what is ready at an entity; an own executor may override it by kind of entity.

        :returns: a function of a coroutine, which calls back, or ``None`` if nothing is ready.
        """
        args = entity._executor_take(self)
        if args is None:
            return None

        async def execute() -> None:
            await await_or_execute(entity._executor_call, *args)

        return execute

    _take_timer = _take_subscription = _take_guard_condition = _take_ready
    _take_client = _take_service = _take_waitable = _take_ready

    def _wait_for_ready_callbacks(
        self, timeout_sec: Optional[float] = None, nodes: Optional[List[Node]] = None,
        condition: Optional[Callable[[], bool]] = None,
    ) -> Any:
        """Yield what :meth:`wait_for_ready_callbacks` returns, until the time-out."""
        while True:
            try:
                yield self._next_task(timeout_sec, nodes, condition)
            except TimeoutException:
                if self._has_own_iterator:
                    raise
                return

    # --- one turn

    def _next(
        self, timeout_sec: Optional[float], condition: Optional[Callable[[], bool]] = None,
        nodes: Optional[List[Node]] = None,
    ) -> Any:
        """Return the next task to step, or the next entry with its arguments to call."""
        deadline = None
        left_ns: Optional[int] = None
        if timeout_sec is not None and timeout_sec >= 0:
            left_ns = int(timeout_sec * 1e9)
            if left_ns:
                deadline = monotonic() + timeout_sec
        polled = False
        # Set before anything is checked, so that no change is missed.
        thread = threading.get_ident()
        self._waiters.add(thread)
        try:
            while True:
                if self._is_shutdown:
                    raise ShutdownException()
                if self._ready:
                    item = self._pop_ready()
                    if item is not None:
                        return item
                if not self._is_context_ok():
                    raise ExternalShutdownException()
                if condition is not None and condition():
                    raise ConditionReachedException()
                if deadline is not None:
                    left_ns = max(int((deadline - monotonic()) * 1e9), 0)
                if polled and left_ns == 0:
                    raise TimeoutException()
                if (self._is_stale or self._tasks or self._tasks_ran or self._blocked
                        or self._dynamic or nodes is not None or not self._has_short_turns):
                    polled |= self._fill(left_ns, nodes)
                    continue
                polled = True
                item = self._wait_for_entities(left_ns)
                if item is not None:
                    return item
        finally:
            self._waiters.discard(thread)

    def _wait_for_entities(self, timeout_ns: Optional[int]) -> Any:
        """
        Wait for the entities that the poller has: a turn with nothing else to do.

        :returns: an entry with its arguments to call, or ``None``.
        """
        try:
            found = self._poller.wait(timeout_ns)
        except InvalidHandle:
            # An entity was destroyed while it was registered. The next turn has its removal.
            self._synchronized = None
            self._is_stale = True
            return None
        if not found:
            return None
        entries = self._entries
        if len(found) > 1:
            self._ready.extend(entries[handle] for handle in found if handle in entries)
            return self._pop_ready()
        entry = entries.get(found[0])
        if entry is None:
            return None
        args = self._begin(entry)
        return None if args is None else (entry, args)

    def _pop_ready(self) -> Any:
        ready = self._ready
        while ready:
            try:
                item = ready.popleft()
            except IndexError:
                # Another thread that spins has taken the last one.
                return None
            if type(item) is _ExecutorTask:
                if not item._done and not item._cancelled:
                    return item
                continue
            args = self._begin(item)
            if args is not None:
                return item, args
        return None

    def _begin(self, entry: Entry) -> Any:
        """Take an entry's data, with its group counting it as running; ``None`` if not."""
        group = entry.group
        entity = entry.entity
        if self._is_customized and not self.can_execute(entity):
            may_run = False
        elif entry.acquire is not None:
            may_run = entry.acquire()
            if may_run:
                group._active_entity = entity
        else:
            may_run = group is None or (
                (entry.is_plain or group.can_execute(entity))
                and group.beginning_execution(entity))
        if not may_run:
            if entry.handle is not None:
                self._poller.remove(entry.handle)
            self._blocked.append(entry)
            return None
        args = None
        try:
            args = entry.take(self)
        except InvalidHandle:
            # It was destroyed since the poller found it.
            pass
        finally:
            if args is None and group is not None:
                group.ending_execution(entity)
        return args

    def _end(self, entry: Entry) -> None:
        if entry.group is not None:
            entry.group.ending_execution(entry.entity)

    def _invoke(self, entry: Entry, args: Tuple) -> Any:
        """Call an entry's callback; return its coroutine, if it is one, else its result."""
        try:
            result = entry.call(*args)
        except BaseException:
            self._end(entry)
            raise
        if result is not None and _is_coroutine(result):
            return self._finish_coroutine(entry, result)
        self._end(entry)
        return result

    async def _finish_coroutine(self, entry: Entry, coroutine: Any) -> Any:
        try:
            return await coroutine
        finally:
            self._end(entry)

    def _fill(self, timeout_ns: Optional[int], nodes: Optional[List[Node]]) -> bool:
        """
        Add what is ready to the queue of what may run: tasks, and entities by turns.

        :returns: whether it has waited for entities.
        """
        ready = self._ready
        requested_ns = timeout_ns
        if self._tasks and not self._tasks_ran:
            with self._tasks_lock:
                waiting = []
                steppable = []
                for task in self._tasks:
                    (steppable if task._can_step() else waiting).append(task)
                self._tasks = waiting
            if steppable:
                # The newest first: it is the likeliest to be awaited by the others.
                ready.extend(reversed(steppable))
                self._tasks_ran = True
                return False
        if self._tasks_ran:
            # Tasks may be left, so this wait must not block.
            self._tasks_ran = False
            timeout_ns = 0
        poller = self._poller
        if self._blocked:
            self._unblock()
        try:
            wait_set = self._synchronize(nodes)
            found = poller.wait(0 if ready else timeout_ns)
        except InvalidHandle:
            # An entity was destroyed while it was registered. The next turn has its removal.
            self._synchronized = None
            self._is_stale = True
            return True
        if wait_set is not None:
            wait_set._set_ready(found)
            for entry in self._dynamic:
                if ((entry.group is None or entry.group.can_execute(entry.entity))
                        and entry.entity.is_ready(wait_set)):
                    ready.append(entry)
        entries = self._entries
        for handle in found:
            entry = entries.get(handle)
            if entry is not None:
                ready.append(entry)
        return timeout_ns == requested_ns

    def _unblock(self) -> None:
        still_blocked = []
        for entry in self._blocked:
            if self.can_execute(entry.entity):
                self._ready.append(entry)
                if entry.handle is not None and entry.handle in self._entries:
                    try:
                        self._poller.add(entry.handle)
                    except InvalidHandle:
                        pass
            else:
                still_blocked.append(entry)
        self._blocked = still_blocked

    def _synchronize(self, nodes: Optional[List[Node]]) -> Any:
        """
        Give the poller the entities of the nodes, if they have changed.

        :returns: the wait set of the waitables whose handles may differ at every turn.
        """
        if nodes is None and not self._is_stale and not self._dynamic:
            return None
        # With chosen nodes, the next turn without them has to look again.
        self._is_stale = nodes is not None
        used = self.get_nodes() if nodes is None else nodes
        versions = [node._entities_version for node in used]
        if versions != self._synchronized:
            self._collect(used)
            self._synchronized = versions
            blocked = {entry.handle for entry in self._blocked}
            if not self._dynamic:
                self._poller.set_entities(
                    [handle for handle in self._entries if handle not in blocked]
                    if blocked else list(self._entries))
        if not self._dynamic:
            return None
        from rclpy.impl.wait_set import WaitSet
        wait_set = WaitSet(self._context.handle)
        for entry in self._dynamic:
            for future in entry.entity._futures:
                future._set_executor(self)
            if entry.group is None or entry.group.can_execute(entry.entity):
                entry.entity.add_to_wait_set(wait_set)
        blocked = {entry.handle for entry in self._blocked}
        handles = wait_set._handles()
        handles.extend(handle for handle in self._entries if handle not in blocked)
        self._poller.set_entities(handles)
        return wait_set

    def _collect(self, nodes: List[Node]) -> None:
        entries: Dict[Any, Entry] = {}
        dynamic: List[Entry] = []
        for node in nodes:
            for waitable in list(node._waitables):
                handles = waitable._static_handles()
                if handles is None:
                    dynamic.append(Entry(
                        None, waitable, node, waitable._executor_take, waitable._executor_call))
                    continue
                for handle in handles:
                    if not handle.is_destroyed:
                        entries[handle] = Entry(
                            handle, waitable, node, HandleTaker(waitable, handle), apply)
            for taker, entities in zip(_TAKERS, (
                    node._timers, node._subscriptions, node._guards, node._clients,
                    node._services)):
                is_own = taker in self._own_takers
                for entity in list(entities):
                    handle = entity.handle
                    if handle.is_destroyed:
                        continue
                    if is_own:
                        take: Any = OwnTaker(getattr(self, taker), entity)
                        call: Any = execute_taken
                    else:
                        take, call = entity._executor_take, entity._executor_call
                    entries[handle] = Entry(handle, entity, node, take, call)
        # Entries that are kept go on in the queues.
        for handle, entry in self._entries.items():
            if handle in entries and entries[handle].node is entry.node:
                entries[handle] = entry
        self._entries = entries
        self._dynamic = dynamic
        kept = set(entries.values())
        waitables = {entry.entity for entry in dynamic}
        ready = [
            item for item in self._ready
            if type(item) is _ExecutorTask or item in kept or item.entity in waitables]
        self._ready.clear()
        self._ready.extend(ready)
        self._blocked = [
            entry for entry in self._blocked if entry in kept or entry.entity in waitables]


class SingleThreadedExecutor(Executor):
    """Runs callbacks in the thread that spins."""

    def _run(self, item: Any) -> None:
        if type(item) is tuple:
            entry, args = item
            try:
                result = entry.call(*args) if args else entry.call()
            except BaseException:
                self._end(entry)
                raise
            if result is None or not _is_coroutine(result):
                if entry.release is not None:
                    entry.group._active_entity = None
                    entry.release()
                elif entry.group is not None:
                    entry.group.ending_execution(entry.entity)
                return
            item = _ExecutorTask(
                self._finish_coroutine(entry, result), (), None, self, entry.node)
        item()
        if item._done:
            # Raises what the task has raised.
            item.result()

    def _spin_once_impl(
        self, timeout_sec: Optional[float] = None,
        wait_condition: Optional[Callable[[], bool]] = None,
    ) -> None:
        if self._is_customized:
            try:
                handler, _, _ = self.wait_for_ready_callbacks(timeout_sec, None, wait_condition)
            except (ShutdownException, TimeoutException, ConditionReachedException):
                return
            handler()
            if handler.done():
                handler.result()
            return
        if not (self._ready or self._is_stale or self._tasks or self._tasks_ran or self._blocked
                or self._dynamic or self._is_shutdown):
            if wait_condition is not None and self._is_context_ok() and wait_condition():
                return
            if timeout_sec is None or timeout_sec < 0:
                item = self._spin_once_natively(None)
            else:
                until = monotonic() + timeout_sec
                item = self._spin_once_natively(int(timeout_sec * 1e9))
                if item is None:
                    timeout_sec = max(until - monotonic(), 0.0)
            if item is True:
                return
            if item is False:
                if self._is_shutdown:
                    return
                raise ExternalShutdownException()
            if item is not None:
                self._run_coroutine(*item)
                return
        try:
            item = self._next(timeout_sec, wait_condition)
        except (ShutdownException, TimeoutException, ConditionReachedException):
            return
        self._run(item)

    def _spin_once_natively(self, timeout_ns: Optional[int]) -> Any:
        """Wait and call in the native module; ``None`` if something else is to be done."""
        thread = threading.get_ident()
        self._waiters.add(thread)
        try:
            return self._poller.spin_once(self, timeout_ns)
        finally:
            self._waiters.discard(thread)

    def _run_coroutine(self, entry: Entry, coroutine: Any) -> None:
        """Step a coroutine that a callback has returned to the native module."""
        self._run(_ExecutorTask(
            self._finish_coroutine(entry, coroutine), (), None, self, entry.node))

    def spin(self) -> None:
        """
        Run callbacks until the context or the executor is shut down.

        :raises ExternalShutdownException: if the context is shut down while it waits.
        """
        if (self._is_customized
                or type(self).spin_once is not SingleThreadedExecutor.spin_once
                or type(self)._spin_once_impl is not SingleThreadedExecutor._spin_once_impl):
            super().spin()
            return
        self._spin_while_ok()

    def _spin_while_ok(self) -> None:
        """Spin, in the native module as long as plain callbacks are all there is to do."""
        is_ok = self._is_context_ok
        next_item = self._next
        run = self._run
        spin = self._poller.spin
        thread = threading.get_ident()
        while is_ok() and not self._is_shutdown:
            if (self._ready or self._is_stale or self._tasks or self._tasks_ran or self._blocked
                    or self._dynamic):
                try:
                    item = next_item(None)
                except ShutdownException:
                    return
                run(item)
                continue
            self._waiters.add(thread)
            try:
                item = spin(self)
            finally:
                self._waiters.discard(thread)
            if item is False:
                if self._is_shutdown:
                    return
                raise ExternalShutdownException()
            if item is not None:
                self._run_coroutine(*item)

    def spin_once(self, timeout_sec: Optional[float] = None) -> None:
        """
        Wait for one callback and run it.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :raises ExternalShutdownException: if the context is shut down while it waits.
        """
        self._spin_once_impl(timeout_sec)

    def spin_once_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """Wait for one callback and run it, or return when a future is done."""
        self._wake_when_done(future)
        self._spin_once_impl(timeout_sec, lambda: future.done() or future.cancelled())


class MultiThreadedExecutor(Executor):
    """
    Runs callbacks in a pool of threads.

    The thread that spins waits and takes. It takes no more than the pool has free threads.
    """

    def __init__(
        self, num_threads: Optional[int] = None, *, context: Optional[Context] = None,
    ) -> None:
        """
        Create an executor without nodes.

        :param num_threads: Threads of the pool; ``None`` stands for the CPUs that the process
            may use.
        :param context: The context of its nodes; ``None`` stands for the default one.
        """
        super().__init__(context=context)
        self._has_short_turns = False
        if num_threads is None:
            if hasattr(os, 'sched_getaffinity'):
                num_threads = len(os.sched_getaffinity(0))
            else:
                num_threads = os.cpu_count()
            if num_threads is None:
                num_threads = 2
        elif num_threads == 1:
            warnings.warn(
                'MultiThreadedExecutor is used with a single thread in the pool.\n'
                'Use the SingleThreadedExecutor instead.')
        # The import takes longer than all of rclpy; single-threaded programs save it.
        from concurrent.futures import ThreadPoolExecutor
        self._executor = ThreadPoolExecutor(num_threads)
        self._num_threads = num_threads
        self._waits_for_threads = True
        self._slots = threading.Condition()
        self._running = 0
        self._woken = False
        self._worker_threads: set = set()
        self._failures: List[BaseException] = []

    def wake(self) -> None:
        """End the wait in progress, so that changes count. From any thread."""
        slots = getattr(self, '_slots', None)
        if slots is not None:
            with slots:
                self._woken = True
                slots.notify_all()
        super().wake()

    def _fill(self, timeout_ns: Optional[int], nodes: Optional[List[Node]]) -> bool:
        return not self._wait_for_slot(timeout_ns) or super()._fill(timeout_ns, nodes)

    def _pop_ready(self) -> Any:
        if self._running >= self._num_threads:
            return None
        return super()._pop_ready()

    def _wait_for_slot(self, timeout_ns: Optional[int]) -> bool:
        """Wait until a thread of the pool is free."""
        with self._slots:
            if self._running < self._num_threads:
                self._woken = False
                return True
            if not self._woken:
                self._slots.wait(None if timeout_ns is None or timeout_ns < 0
                                 else timeout_ns / 1e9)
            self._woken = False
            return False

    def _work(self, item: Any) -> None:
        """Run one item in a thread of the pool."""
        thread = threading.get_ident()
        self._worker_threads.add(thread)
        try:
            if type(item) is tuple:
                entry, args = item
                result = self._invoke(entry, args)
                if result is None or not _is_coroutine(result):
                    return
                item = _ExecutorTask(result, (), None, self, entry.node)
            item()
            if item._done:
                item.result()
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._worker_threads.discard(thread)
            with self._slots:
                self._running -= 1
                self._slots.notify_all()
            if self._blocked or self._failures:
                # The poller has to know what the ended callback kept from running.
                super().wake()

    def _spin_once_impl(
        self, timeout_sec: Optional[float] = None,
        wait_condition: Optional[Callable[[], bool]] = None,
    ) -> None:
        failures = self._failures

        def stop() -> bool:
            return bool(failures) or (wait_condition is not None and wait_condition())

        try:
            if self._is_customized:
                item, _, _ = self.wait_for_ready_callbacks(timeout_sec, None, stop)
            else:
                item = self._next(timeout_sec, stop)
        except (ExternalShutdownException, ShutdownException, TimeoutException,
                ConditionReachedException):
            pass
        else:
            with self._slots:
                self._running += 1
            try:
                self._executor.submit(self._work, item)
            except RuntimeError:
                # The pool is shut down.
                with self._slots:
                    self._running -= 1
        if failures:
            raise failures.pop(0)

    def spin_once(self, timeout_sec: Optional[float] = None) -> None:
        """
        Wait for one callback and let the pool run it.

        :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
        :raises: the exception of an earlier callback.
        """
        self._spin_once_impl(timeout_sec)

    def spin_once_until_future_complete(
        self, future: Future, timeout_sec: Optional[float] = None,
    ) -> None:
        """Wait for one callback and let the pool run it, or return when a future is done."""
        self._wake_when_done(future)
        self._spin_once_impl(timeout_sec, lambda: future.done() or future.cancelled())

    def shutdown(
        self, timeout_sec: Optional[float] = None, *, wait_for_threads: bool = True,
    ) -> bool:
        """
        Stop the executor; see :meth:`Executor.shutdown`.

        :param wait_for_threads: Return when the threads of the pool have ended, too, as later
            releases offer it.
        """
        self._waits_for_threads = wait_for_threads
        return super().shutdown(timeout_sec)

    def _wait_for_callbacks(self, timeout_sec: Optional[float]) -> bool:
        # A callback may shut its own executor down; it does not wait for itself.
        in_worker = threading.get_ident() in self._worker_threads
        if not in_worker:
            with self._slots:
                self._slots.notify_all()
                if not self._slots.wait_for(
                        lambda: self._running == 0,
                        None if timeout_sec is None or timeout_sec < 0 else timeout_sec):
                    return False
        self._executor.shutdown(wait=self._waits_for_threads and not in_worker)
        return True
