"""Entity: what a launch description consists of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Iterable, List, Optional, Tuple

    from launch.launch_context import LaunchContext


class LaunchDescriptionEntity:
    """Base of launch descriptions and actions."""

    def describe(self) -> str:
        """Return a text for people."""
        raise NotImplementedError(f'{type(self).__name__} does not implement describe()')

    def describe_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the entities that are always visited after this one."""
        return []

    def describe_conditional_sub_entities(
        self,
    ) -> List[Tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return the entities that may be visited, with the reason."""
        return []

    def visit(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Carry the entity out, and return the entities to visit next."""
        return None

    def _finish_visit(self, context: LaunchContext) -> None:
        """Do what is left after all sub-entities have been visited."""

    def get_asyncio_future(self) -> Optional[asyncio.Future]:
        """Return a future that is done when the entity is, or ``None`` if it already is."""
        return None
