"""Entries of an executor: the entities that are registered with its poller."""

from __future__ import annotations

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Tuple

    from rclpy.callback_groups import CallbackGroup
    from rclpy.executors import Executor
    from rclpy.node import Node


def apply(function: Callable[..., Any], args: Tuple) -> Any:
    """Call a function with a tuple of arguments."""
    return function(*args)


class Entry:
    """An entity that is registered with the poller."""

    __slots__ = (
        'handle', 'entity', 'group', 'is_plain', 'lock', 'acquire', 'release', 'node', 'take',
        'call')

    def __init__(
        self, handle: Any, entity: Any, node: Optional[Node], take: Callable[..., Any],
        call: Callable[..., Any],
    ) -> None:
        self.handle = handle
        self.entity = entity
        self.group: Optional[CallbackGroup] = entity.callback_group
        # The groups of rclpy answer both questions in beginning_execution.
        self.is_plain = type(self.group) in (
            MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup)
        # The lock of a mutually exclusive group of rclpy: what its methods do, without calls.
        self.lock: Any = None
        self.acquire: Any = None
        self.release: Any = None
        if type(self.group) is MutuallyExclusiveCallbackGroup:
            self.lock = self.group._active
            self.acquire = self.lock.acquire
            self.release = self.lock.release
        self.node = node
        # Takes what is ready: the arguments of `call`, or None if there is nothing.
        self.take = take
        self.call = call


def execute_taken(execute: Callable[[], Any]) -> Any:
    """Call what an executor's own member has taken: a function of a coroutine."""
    return execute()


class OwnTaker:
    """Takes by the member of an own executor."""

    __slots__ = ('take', 'entity')

    def __init__(self, take: Callable[[Any], Any], entity: Any) -> None:
        self.take = take
        self.entity = entity

    def __call__(self, executor: Executor) -> Any:
        execute = self.take(self.entity)
        return None if execute is None else (execute,)


class HandleTaker:
    """Takes from one handle of a waitable whose handles never change."""

    __slots__ = ('waitable', 'handle')

    def __init__(self, waitable: Any, handle: Any) -> None:
        self.waitable = waitable
        self.handle = handle

    def __call__(self, executor: Executor) -> Any:
        return self.waitable._take_handle(self.handle, executor)
