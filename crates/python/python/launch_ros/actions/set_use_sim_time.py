"""Action: set use_sim_time of the launch's own node."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities.type_utils import (
    normalize_typed_substitution, perform_typed_substitution,
)

from launch_ros.ros_adapters import get_ros_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_action('set_use_sim_time')
class SetUseSimTime(Action):
    """Sets use_sim_time of the launch's own node, whose clock ROSTimer uses."""

    _TEXTS = {'value': 'value'}

    def __init__(self, value: Union[bool, SomeSubstitutionsType], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__value = normalize_typed_substitution(value, bool)

    @property
    def value(self) -> Any:
        """The value."""
        return self.__value

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        value = perform_typed_substitution(context, self.__value, bool)
        if context.plan is not None:
            context.plan.add(
                'event', f'set use_sim_time of the launch to {value}', use_sim_time=value)
            return
        from rclpy.parameter import Parameter
        node = get_ros_node(context)
        node.set_parameters([Parameter('use_sim_time', Parameter.Type.BOOL, value)])
        if node.get_parameter('use_sim_time').value != value:
            raise RuntimeError('Failed to set use_sim_time parameter')
