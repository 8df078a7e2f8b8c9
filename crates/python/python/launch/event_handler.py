"""Event handler: returns entities to visit when a matching event is processed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional, Tuple

    from launch.event import Event
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_entities_type import SomeEntitiesType


class BaseEventHandler:
    """An event handler without entities of its own."""

    def __init__(self, *, matcher: Callable[[Event], bool], handle_once: bool = False) -> None:
        self.__matcher = matcher
        self.__handle_once = handle_once

    @property
    def handle_once(self) -> bool:
        """Whether the handler is removed after its first event."""
        return self.__handle_once

    @property
    def handler_description(self) -> Optional[str]:
        """What the handler does, for people."""
        return None

    @property
    def matcher_description(self) -> Optional[str]:
        """Which events match, for people."""
        return None

    def matches(self, event: Event) -> bool:
        """Return whether the handler handles an event."""
        return self.__matcher(event)

    def describe(self) -> Tuple[str, List[LaunchDescriptionEntity]]:
        """Return a text for people, and the entities that are known before the event."""
        text = (
            f"{type(self).__name__}(matcher='{self.matcher_description}', "
            f"handler='{self.handler_description}', handle_once={self.handle_once})")
        return text, []

    def handle(self, event: Event, context: LaunchContext) -> Optional[SomeEntitiesType]:
        """Handle an event, and return the entities to visit."""
        context.extend_locals({'event': event})
        if self.__handle_once:
            context.unregister_event_handler(self)
        return None


class EventHandler(BaseEventHandler):
    """An event handler with given entities."""

    def __init__(
        self,
        *,
        matcher: Callable[[Event], bool],
        entities: Optional[SomeEntitiesType] = None,
        handle_once: bool = False,
    ) -> None:
        super().__init__(matcher=matcher, handle_once=handle_once)
        self.__entities = entities

    @property
    def entities(self) -> Optional[SomeEntitiesType]:
        """The entities to visit."""
        return self.__entities

    def describe(self) -> Tuple[str, List[LaunchDescriptionEntity]]:
        """Return a text for people, and the entities."""
        from launch.launch_description_entity import LaunchDescriptionEntity
        text, known = super().describe()
        if isinstance(self.__entities, LaunchDescriptionEntity):
            known.append(self.__entities)
        elif self.__entities:
            known.extend(self.__entities)
        return text, known

    def handle(self, event: Event, context: LaunchContext) -> Optional[SomeEntitiesType]:
        """Handle an event, and return the entities to visit."""
        super().handle(event, context)
        return self.__entities
