"""Part that all entities of an asynchronous node have in common."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class AsyncEntity:
    """Leaves its node when it is destroyed, and ends its callbacks that wait."""

    _owner: Optional[Any] = None

    def destroy(self) -> None:
        """Destroy the entity, and cancel its callbacks that wait. Once is enough."""
        owner, self._owner = self._owner, None
        if owner is not None:
            owner._release(self)
            super().destroy()  # type: ignore[misc]
