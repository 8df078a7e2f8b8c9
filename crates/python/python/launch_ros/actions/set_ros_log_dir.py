"""Action: set the log folder of the following nodes."""

from __future__ import annotations

import os

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.logging import get_logging_directory
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_action('set_ros_log_dir')
class SetROSLogDir(Action):
    """Sets the log folder of all following nodes; a relative path is below the one before."""

    _TEXTS = {'new_log_dir': 'new_log_dir'}

    def __init__(self, new_log_dir: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__log_dir = normalize_to_list_of_substitutions(new_log_dir)

    @property
    def log_dir(self) -> List[Substitution]:
        """The folder."""
        return self.__log_dir

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        folder = perform_substitutions(context, self.__log_dir)
        before = os.path.abspath(get_logging_directory())
        os.environ['ROS_LOG_DIR'] = os.path.join(before, folder)
