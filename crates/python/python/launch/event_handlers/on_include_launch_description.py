"""Handler: a launch description is to be visited."""

from __future__ import annotations

from launch.event_handler import EventHandler
from launch.events.include_launch_description import IncludeLaunchDescription
from launch.utilities import is_a_subclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OnIncludeLaunchDescription(EventHandler):
    """Visits the launch descriptions of events."""

    def __init__(self, **kwargs: Any) -> None:
        from launch.actions import OpaqueFunction
        super().__init__(
            matcher=lambda event: is_a_subclass(event, IncludeLaunchDescription),
            entities=OpaqueFunction(
                function=lambda context: [context.locals.event.launch_description]),
            **kwargs)

    @property
    def handler_description(self) -> str:
        """What the handler does, for people."""
        return 'returns the launch_description in the event'

    @property
    def matcher_description(self) -> str:
        """Which events match, for people."""
        return 'event issubclass of launch.events.IncludeLaunchDescription'
