"""Visit of an entity and all entities that follow from it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import List, Tuple

    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity

    Pairs = List[Tuple[LaunchDescriptionEntity, asyncio.Future]]


def visit_all_entities_and_collect_futures(
    entity: LaunchDescriptionEntity, context: LaunchContext,
) -> Pairs:
    """Visit an entity and its sub-entities, and return those that are not done."""
    pairs: Pairs = []
    sub_entities = entity.visit(context)
    future = entity.get_asyncio_future()
    if future is not None:
        pairs.append((entity, future))
    for sub_entity in sub_entities or ():
        pairs += visit_all_entities_and_collect_futures(sub_entity, context)
    entity._finish_visit(context)
    return pairs
