"""Action: set a parameter of the following nodes."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions

from launch_ros.utilities.evaluate_parameters import evaluate_parameter_dict
from launch_ros.utilities.normalize_parameters import normalize_parameter_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

    from launch_ros.parameters_type import ParameterName, ParameterValue, SomeParameterValue


def add_global_parameters(context: LaunchContext, parameters: Any) -> None:
    """Add parameters of all following nodes, to the end of the group."""
    # A new list: the one outside of the group stays as it is.
    before = context.launch_configurations.get('global_params', [])
    context.launch_configurations['global_params'] = [*before, *parameters]


@expose_action('set_parameter')
class SetParameter(Action):
    """Sets a parameter of all following nodes, to the end of the group."""

    _TEXTS = {'name': 'name', 'value': 'value'}

    def __init__(
        self, name: SomeSubstitutionsType, value: SomeParameterValue, **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = normalize_to_list_of_substitutions(name)
        self.__parameters = normalize_parameter_dict({tuple(name): value})

    @property
    def name(self) -> ParameterName:
        """The name."""
        return next(iter(self.__parameters))

    @property
    def value(self) -> ParameterValue:
        """The value."""
        return next(iter(self.__parameters.values()))

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        evaluated = evaluate_parameter_dict(context, self.__parameters)
        add_global_parameters(context, evaluated.items())
