"""Action: remove an event handler."""

from __future__ import annotations

from launch.action import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from launch.event_handler import BaseEventHandler
    from launch.launch_context import LaunchContext


class UnregisterEventHandler(Action):
    """Removes an event handler."""

    def __init__(self, event_handler: BaseEventHandler, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__event_handler = event_handler

    @property
    def event_handler(self) -> BaseEventHandler:
        """The handler."""
        return self.__event_handler

    def execute(self, context: LaunchContext) -> None:
        """Remove it."""
        if context.plan is None:
            context.unregister_event_handler(self.__event_handler)
