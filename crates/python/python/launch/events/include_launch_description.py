"""Event: a launch description is to be visited."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_description import LaunchDescription


class IncludeLaunchDescription(Event):
    """A launch description is to be visited."""

    name = 'launch.events.IncludeLaunchDescription'

    def __init__(self, launch_description: LaunchDescription) -> None:
        self.__launch_description = launch_description

    @property
    def launch_description(self) -> LaunchDescription:
        """The description."""
        return self.__launch_description
