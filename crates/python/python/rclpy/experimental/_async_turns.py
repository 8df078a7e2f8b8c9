"""Turns of an asynchronous node: runs what is ready, in the event loop of asyncio."""

from __future__ import annotations

import asyncio

from rclpy.executors import Executor, ShutdownException, TimeoutException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, NoReturn, Optional, Set

    from rclpy.context import Context

CALLBACKS_PER_TURN_MAX = 64
"""Callbacks of one turn; then other tasks of the loop run."""


class AsyncTurns(Executor):
    """
    An executor without a spin: the loop calls it when its descriptor is readable.

    Plain callbacks run at once. A coroutine becomes a task of the node's group, and its callback
    group is busy until the task is done.
    """

    def __init__(self, context: Context, tasks: asyncio.TaskGroup) -> None:
        """Create turns in the running loop."""
        super().__init__(context=context)
        self._loop = asyncio.get_running_loop()
        self._group = tasks
        self._running: Dict[Any, Set[asyncio.Task]] = {}
        self._descriptor = self._poller.fileno()
        # Wakes reach the loop by the descriptor, from any thread.
        self._waiters.add(self)

    def start(self) -> None:
        """Run what is ready, now and whenever something is."""
        self._loop.add_reader(self._descriptor, self._turn)
        self._loop.call_soon(self._turn)

    def stop(self) -> None:
        """End turns and tasks. Once is enough."""
        if self._is_shutdown:
            return
        self._loop.remove_reader(self._descriptor)
        for entity in list(self._running):
            self.cancel(entity)
        self.shutdown()

    def cancel(self, entity: Any) -> None:
        """Cancel the coroutines of an entity's callbacks."""
        for task in list(self._running.get(entity, ())):
            task.cancel()

    def _turn(self) -> None:
        if self._is_shutdown:
            return
        is_idle = False
        try:
            for _ in range(CALLBACKS_PER_TURN_MAX):
                try:
                    item = self._next(0)
                except TimeoutException:
                    is_idle = True
                    break
                self._run(item)
        except ShutdownException:
            return
        except Exception as error:
            # That of a callback, or of a context that was shut down: it ends the node.
            if not self._is_shutdown:
                self._loop.remove_reader(self._descriptor)
                self._start_task(_raise(error))
            return
        if not self._is_shutdown and not (is_idle and self._poller.arm()):
            self._loop.call_soon(self._turn)

    def _run(self, item: Any) -> None:
        if type(item) is not tuple:
            item()
            if item._done:
                item.result()
            return
        entry, args = item
        try:
            coroutine = entry.call(*args)
        except BaseException:
            self._end(entry)
            raise
        if coroutine is None or not hasattr(coroutine, '__await__'):
            self._end(entry)
            return
        task = self._start_task(_await(coroutine))
        if task is None:
            coroutine.close()
            return
        self._running.setdefault(entry.entity, set()).add(task)
        task.add_done_callback(lambda done: self._finish(entry, coroutine, done))

    def _start_task(self, coroutine: Any) -> Optional[asyncio.Task]:
        """Start a task of the group, unless an error ends the group already."""
        try:
            return self._group.create_task(coroutine)
        except RuntimeError:
            coroutine.close()
            self.stop()
            return None

    def _finish(self, entry: Any, coroutine: Any, task: asyncio.Task) -> None:
        # A task that was cancelled before its first step has not touched it.
        coroutine.close()
        self._end(entry)
        tasks = self._running.get(entry.entity)
        if tasks is not None:
            tasks.discard(task)
            if not tasks:
                del self._running[entry.entity]
        if self._blocked and not self._is_shutdown:
            # The callback group is free again.
            self._loop.call_soon(self._turn)


async def _await(coroutine: Any) -> None:
    await coroutine


async def _raise(error: Exception) -> NoReturn:
    raise error
