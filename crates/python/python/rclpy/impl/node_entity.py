"""What all entities of a node have in common."""

from __future__ import annotations

from types import GenericAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Generic:
    """Base of classes that annotations may subscribe, as in ``Publisher[String]``."""

    __class_getitem__ = classmethod(GenericAlias)


class NodeEntity(Generic):
    """Base of entities; it also works as a context manager that destroys the entity."""

    _logger_name = ''

    @property
    def logger_name(self) -> str:
        """The name of the node's logger."""
        return self._logger_name

    def destroy(self) -> None:
        """Destroy the entity."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.destroy()
