"""Action: emit an event."""

from __future__ import annotations

from launch.action import Action
from launch.event import Event
from launch.utilities import is_a_subclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from launch.launch_context import LaunchContext


class EmitEvent(Action):
    """Emits an event."""

    def __init__(self, *, event: Event, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not is_a_subclass(event, Event):
            raise RuntimeError(f"EmitEvent() expected an event instance, got '{event}'.")
        self.__event = event

    @property
    def event(self) -> Event:
        """The event."""
        return self.__event

    def execute(self, context: LaunchContext) -> None:
        """Queue the event."""
        if context.plan is not None:
            context.plan.add(
                'event', f'emit {self.__event.name}', event=self.__event.name)
            return
        context.emit_event_sync(self.__event)
