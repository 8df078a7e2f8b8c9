"""Action: put the following nodes below a namespace."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.substitutions import SubstitutionFailure
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from launch_ros.utilities import make_namespace_absolute, prefix_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_action('push_ros_namespace')
@expose_action('push-ros-namespace')
class PushROSNamespace(Action):
    """Puts the following nodes below a namespace, to the end of the group."""

    _TEXTS = {'namespace': 'namespace'}

    def __init__(self, namespace: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__namespace = normalize_to_list_of_substitutions(namespace)

    @property
    def namespace(self) -> List[Substitution]:
        """The namespace."""
        return self.__namespace

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        from rclpy.validate_namespace import validate_namespace
        pushed = perform_substitutions(context, self.__namespace)
        before = context.launch_configurations.get('ros_namespace', None)
        namespace = make_namespace_absolute(prefix_namespace(before, pushed))
        try:
            validate_namespace(namespace)
        except Exception as error:
            raise SubstitutionFailure(
                f"The resulting namespace is invalid: [previous_namespace='{before}', "
                f"pushed_namespace='{pushed}']: {error}") from error
        context.launch_configurations['ros_namespace'] = namespace


PushRosNamespace = PushROSNamespace
