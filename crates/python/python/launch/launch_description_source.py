"""Source of a launch description: a description, or the place to read it from."""

from __future__ import annotations

import traceback

import launch.logging
from launch.launch_context import LaunchContext
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from launch.launch_description import LaunchDescription
    from launch.some_substitutions_type import SomeSubstitutionsType


class LaunchDescriptionSource:
    """A launch description that is read when it is needed."""

    def __init__(
        self,
        launch_description: Optional[LaunchDescription] = None,
        location: SomeSubstitutionsType = '<string>',
        method: str = 'unspecified mechanism from a script',
    ) -> None:
        self.__launch_description = launch_description
        self.__location = normalize_to_list_of_substitutions(location)
        self.__expanded_location: Optional[str] = None
        self.__method = method
        self.__logger = launch.logging.get_logger('launch.launch_description_source')

    def try_get_launch_description_without_context(self) -> Optional[LaunchDescription]:
        """Return the description, or ``None`` if its location depends on the context."""
        if self.__launch_description is not None:
            return self.__launch_description
        try:
            location = perform_substitutions(LaunchContext(), self.__location)
            return self._get_launch_description(location)
        except Exception as error:
            self.__logger.debug(traceback.format_exc())
            self.__logger.debug(f'Failed to load the launch file without a context: {error}')
        return None

    def get_launch_description(self, context: LaunchContext) -> LaunchDescription:
        """Return the description; it is read once."""
        if self.__expanded_location is None:
            self.__expanded_location = perform_substitutions(context, self.__location)
        if self.__launch_description is None:
            self.__launch_description = self._get_launch_description(self.__expanded_location)
        return self.__launch_description

    def _get_launch_description(self, location: str) -> LaunchDescription:
        if self.__launch_description is None:
            raise RuntimeError(
                'this LaunchDescriptionSource has no launch description, and its class does '
                'not read one')
        return self.__launch_description

    @property
    def location(self) -> str:
        """The place; before it is read, its substitutions."""
        if self.__expanded_location is None:
            return ' + '.join(str(part) for part in self.__location)
        return self.__expanded_location

    @property
    def method(self) -> str:
        """How the description is read, for people."""
        return self.__method
