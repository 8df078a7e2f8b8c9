"""Action: remove a launch configuration."""

from __future__ import annotations

from launch.action import Action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


class UnsetLaunchConfiguration(Action):
    """Removes a launch configuration, if it is there."""

    def __init__(self, name: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__name = normalize_to_list_of_substitutions(name)

    @property
    def name(self) -> List[Substitution]:
        """The configuration."""
        return self.__name

    def execute(self, context: LaunchContext) -> None:
        """Remove it."""
        context.launch_configurations.pop(perform_substitutions(context, self.__name), None)
