"""Action: set parameters of the following nodes from a file."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from launch_ros.actions.set_parameter import add_global_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_action('set_parameters_from_file')
class SetParametersFromFile(Action):
    """Gives a parameter file to all following nodes, to the end of the group."""

    _TEXTS = {'filename': 'filename'}

    def __init__(self, filename: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._input_file = normalize_to_list_of_substitutions(filename)

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        add_global_parameters(context, [perform_substitutions(context, self._input_file)])
