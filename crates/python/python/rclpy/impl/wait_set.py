"""
Wait sets, for waitables that add their handles at every turn.

Executors use a poller. They build a wait set only for waitables of users.
"""

from __future__ import annotations

from pteros import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional


class WaitSet:
    """Handles by kind, and which of them are ready."""

    def __init__(self, *args: Any) -> None:
        """Create an empty set. The last argument is the context; sizes before it are ignored."""
        self._context = args[-1] if args else None
        self._poller: Optional[_native.Poller] = None
        self._ready: set = set()
        self._by_kind: Dict[str, List[Any]] = {}
        self.clear_entities()

    def clear_entities(self) -> None:
        """Remove all handles."""
        self._by_kind = {
            kind: [] for kind in (
                'subscription', 'guard_condition', 'timer', 'client', 'service', 'event')}

    def _add(self, kind: str, handle: Any) -> int:
        handle = getattr(handle, '_native_handle', handle)
        self._by_kind[kind].append(handle)
        return len(self._by_kind[kind]) - 1

    def add_subscription(self, subscription: Any) -> int:
        """Add a subscription and return its index."""
        return self._add('subscription', subscription)

    def add_guard_condition(self, guard_condition: Any) -> int:
        """Add a guard condition and return its index."""
        return self._add('guard_condition', guard_condition)

    def add_timer(self, timer: Any) -> int:
        """Add a timer and return its index."""
        return self._add('timer', timer)

    def add_client(self, client: Any) -> int:
        """Add a client and return its index."""
        return self._add('client', client)

    def add_service(self, service: Any) -> int:
        """Add a server and return its index."""
        return self._add('service', service)

    def add_event(self, event: Any) -> int:
        """Add an event and return its index."""
        return self._add('event', event)

    def _handles(self) -> List[Any]:
        return [handle for handles in self._by_kind.values() for handle in handles]

    def _set_ready(self, handles: Any) -> None:
        self._ready = set(handles)

    def wait(self, timeout_nsec: int) -> None:
        """Wait until a handle is ready; negative stands for "for ever"."""
        if self._poller is None:
            self._poller = _native.Poller(self._context)
        self._poller.set_entities(self._handles())
        self._ready = set(self._poller.wait(timeout_nsec))

    def is_ready(self, entity_kind: str, index: int) -> bool:
        """Return whether the handle of a kind and index is ready."""
        if index is None:
            return False
        handles = self._by_kind[entity_kind]
        return index < len(handles) and handles[index] in self._ready

    def get_ready_entities(self, entity_kind: str) -> List[int]:
        """Return the pointers of the ready handles of a kind."""
        return [
            handle.pointer for handle in self._by_kind[entity_kind] if handle in self._ready]

    def destroy_when_not_in_use(self) -> None:
        """Free the poller."""
        if self._poller is not None:
            self._poller.close()
            self._poller = None

    def __enter__(self) -> WaitSet:
        return self

    def __exit__(self, t: Any, v: Any, tb: Any) -> None:
        return None
