"""Handler: the launch ends."""

from __future__ import annotations

from launch.event_handler import BaseEventHandler
from launch.events.shutdown import Shutdown
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.utilities import is_a_subclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple, Union

    from launch.event import Event
    from launch.launch_context import LaunchContext
    from launch.some_entities_type import SomeEntitiesType


class OnShutdown(BaseEventHandler):
    """Does something when the launch ends."""

    def __init__(
        self,
        *,
        on_shutdown: Union[
            SomeEntitiesType, Callable[[Shutdown, LaunchContext], Optional[SomeEntitiesType]]],
        **kwargs: Any,
    ) -> None:
        super().__init__(matcher=lambda event: is_a_subclass(event, Shutdown), **kwargs)
        self.__on_shutdown = on_shutdown

    def handle(self, event: Event, context: LaunchContext) -> Optional[SomeEntitiesType]:
        """Handle the event, and return the entities to visit."""
        super().handle(event, context)
        if callable(self.__on_shutdown):
            return self.__on_shutdown(event, context)
        return self.__on_shutdown

    def describe(self) -> Tuple[str, List[LaunchDescriptionEntity]]:
        """Return a text for people, and the entities that are known before the event."""
        text, known = super().describe()
        if isinstance(self.__on_shutdown, LaunchDescriptionEntity):
            known.append(self.__on_shutdown)
        elif not callable(self.__on_shutdown):
            known.extend(self.__on_shutdown)
        return text, known

    @property
    def handler_description(self) -> str:
        """What the handler does, for people."""
        return str(self.__on_shutdown)

    @property
    def matcher_description(self) -> str:
        """Which events match, for people."""
        return 'event issubclass of launch.events.Shutdown'
