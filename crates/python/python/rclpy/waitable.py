"""Waitables: entities of users that executors wait for."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.impl.node_entity import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.callback_groups import CallbackGroup
    from rclpy.task import Future
else:
    __getattr__ = getter_of(__name__)


class NumberOfEntities:
    """How many entities of each kind a waitable has."""

    __slots__ = [
        'num_subscriptions', 'num_guard_conditions', 'num_timers', 'num_clients',
        'num_services', 'num_events',
    ]

    def __init__(
        self, num_subs: int = 0, num_gcs: int = 0, num_timers: int = 0, num_clients: int = 0,
        num_services: int = 0, num_events: int = 0,
    ) -> None:
        self.num_subscriptions = num_subs
        self.num_guard_conditions = num_gcs
        self.num_timers = num_timers
        self.num_clients = num_clients
        self.num_services = num_services
        self.num_events = num_events

    def __add__(self, other: NumberOfEntities) -> NumberOfEntities:
        return NumberOfEntities(*(
            getattr(self, slot) + getattr(other, slot) for slot in self.__slots__))

    def __iadd__(self, other: NumberOfEntities) -> NumberOfEntities:
        for slot in self.__slots__:
            setattr(self, slot, getattr(self, slot) + getattr(other, slot))
        return self

    def __repr__(self) -> str:
        return f'<{type(self).__name__}({", ".join(str(getattr(self, s)) for s in self.__slots__)})>'


class Waitable(Generic):
    """
    Base of waitables.

    An executor calls :meth:`add_to_wait_set` before it waits, :meth:`is_ready` after it,
    :meth:`take_data` on a ready waitable, and runs :meth:`execute` with what it took.
    """

    def __init__(self, callback_group: CallbackGroup) -> None:
        self.callback_group = callback_group
        if callback_group is not None:
            self.callback_group.add_entity(self)
        self._executor_event = False
        self._futures: list = []

    def __enter__(self) -> None:
        """Keep the handles alive; for subclasses that have some."""

    def __exit__(self, t: Any, v: Any, tb: Any) -> None:
        """Let the handles be destroyed."""

    def add_future(self, future: Future) -> None:
        """Let the executor of the waitable run the future's done callbacks."""
        self._futures.append(future)

    def remove_future(self, future: Future) -> None:
        """Undo :meth:`add_future`."""
        self._futures.remove(future)

    def is_ready(self, wait_set: Any) -> bool:
        """Return whether an entity of the waitable is ready."""
        raise NotImplementedError('Must be implemented by subclass')

    def take_data(self) -> Any:
        """Take what is ready, so that the next wait does not find it again."""
        raise NotImplementedError('Must be implemented by subclass')

    async def execute(self, taken_data: Any) -> None:
        """Process what was taken."""
        raise NotImplementedError('Must be implemented by subclass')

    def get_num_entities(self) -> NumberOfEntities:
        """Return how many entities of each kind :meth:`add_to_wait_set` adds."""
        raise NotImplementedError('Must be implemented by subclass')

    def add_to_wait_set(self, wait_set: Any) -> None:
        """Add the entities to a wait set."""
        raise NotImplementedError('Must be implemented by subclass')

    def _static_handles(self) -> Any:
        """
        Return the handles of a waitable that always has the same ones, else ``None``.

        An executor registers static handles once and calls :meth:`_take_handle`.
        """
        return None

    def _executor_take(self, executor: Any) -> Any:
        for future in self._futures:
            future._set_executor(executor)
        return (self.take_data(),)

    def _executor_call(self, taken_data: Any) -> Any:
        return self.execute(taken_data)


class StaticWaitable(Waitable):
    """
    Base of waitables whose handles never change.

    A subclass implements :meth:`_static_handles`, and :meth:`_take_handle`, which returns a
    function and its arguments, or ``None`` if the handle has nothing.
    """

    def _take_handle(self, handle: Any, executor: Any) -> Any:
        raise NotImplementedError('Must be implemented by subclass')

    def __enter__(self) -> None:
        for handle in self._static_handles():
            handle.__enter__()

    def __exit__(self, t: Any, v: Any, tb: Any) -> None:
        for handle in self._static_handles():
            handle.__exit__(t, v, tb)

    def is_ready(self, wait_set: Any) -> bool:
        """Return whether an entity of the waitable is ready."""
        return any(handle.is_ready() for handle in self._static_handles())

    def take_data(self) -> Any:
        """Take what is ready: functions and their arguments."""
        taken = [
            self._take_handle(handle, None) for handle in self._static_handles()
            if handle.is_ready()]
        return [call for call in taken if call is not None]

    async def execute(self, taken_data: Any) -> None:
        """Call what :meth:`take_data` returned."""
        for function, args in taken_data:
            result = function(*args)
            if hasattr(result, '__await__'):
                await result

    def add_to_wait_set(self, wait_set: Any) -> None:
        """Add the entities to a wait set."""
        for handle in self._static_handles():
            wait_set._add(_wait_set_kind(handle), handle)


def _wait_set_kind(handle: Any) -> str:
    from pteros import _native
    return {
        _native.Subscription: 'subscription', _native.GuardCondition: 'guard_condition',
        _native.Timer: 'timer', _native.Client: 'client', _native.Service: 'service',
        _native.EventHandle: 'event'}[type(handle)]
