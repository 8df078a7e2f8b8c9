"""Callback groups: the callbacks that may run at the same time."""

from __future__ import annotations

import weakref

from pteros import _native
from rclpy._imported_names import getter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    __getattr__ = getter_of(__name__)


class CallbackGroup:
    """
    Base of the callback groups. It may be subclassed.

    An executor asks :meth:`can_execute` before it chooses an entity, calls
    :meth:`beginning_execution` before its callback and :meth:`ending_execution` after it.
    """

    def __init__(self) -> None:
        self.entities: set = set()

    def add_entity(self, entity: Any) -> None:
        """Add an entity; the group keeps a weak reference."""
        self.entities.add(weakref.ref(entity))

    def has_entity(self, entity: Any) -> bool:
        """Return whether the entity is in the group."""
        return weakref.ref(entity) in self.entities

    def can_execute(self, entity: Any) -> bool:
        """Return whether the entity's callback may run now."""
        raise NotImplementedError()

    def beginning_execution(self, entity: Any) -> bool:
        """
        Register that an entity's callback begins.

        :returns: ``False`` if it must not run now.
        """
        raise NotImplementedError()

    def ending_execution(self, entity: Any) -> None:
        """Register that an entity's callback has ended."""
        raise NotImplementedError()


class ReentrantCallbackGroup(CallbackGroup):
    """Allow all callbacks to run at the same time, also two of one entity."""

    def can_execute(self, entity: Any) -> bool:
        """Return ``True``."""
        return True

    def beginning_execution(self, entity: Any) -> bool:
        """Return ``True``."""
        return True

    def ending_execution(self, entity: Any) -> None:
        """Do nothing."""


class MutuallyExclusiveCallbackGroup(CallbackGroup):
    """Allow one callback at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._active_entity: Any = None
        # Locked while a callback runs. It may end in another thread than it began in.
        self._active = _native.GroupLock()

    def can_execute(self, entity: Any) -> bool:
        """Return whether no callback of the group runs."""
        return not self._active.locked()

    def beginning_execution(self, entity: Any) -> bool:
        """Make the entity the active one, if there is none."""
        if self._active.acquire():
            self._active_entity = entity
            return True
        return False

    def ending_execution(self, entity: Any) -> None:
        """
        Let the next callback run.

        :raises AssertionError: if the entity is not the active one.
        """
        if self._active_entity is not entity:
            raise AssertionError(
                f'{entity!r} ends its execution, but {self._active_entity!r} is active')
        self._active_entity = None
        self._active.release()
