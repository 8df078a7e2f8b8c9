"""Action: remove an event handler."""

from __future__ import annotations

from launch.actions.register_event_handler import EventHandlerAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class UnregisterEventHandler(EventHandlerAction):
    """Removes an event handler."""

    def execute(self, context: LaunchContext) -> None:
        """Remove it."""
        if context.plan is None:
            context.unregister_event_handler(self.event_handler)
