"""The protocol of handles that can be destroyed while they are in use."""

from __future__ import annotations

from typing import Any, Protocol


class DestroyableType(Protocol):
    """A handle: ``with`` keeps it alive, and it is destroyed when no ``with`` holds it."""

    def __enter__(self) -> None: ...

    def __exit__(self, exc_type: Any, exc_val: Any, exctb: Any) -> None: ...

    def destroy_when_not_in_use(self) -> None: ...
