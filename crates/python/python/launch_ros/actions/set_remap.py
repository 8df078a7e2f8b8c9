"""Action: remap a name for the following nodes."""

from __future__ import annotations

from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


@expose_action('set_remap')
class SetRemap(Action):
    """Remaps a name for all following nodes, to the end of the group."""

    _TEXTS = {'src': 'from', 'dst': 'to'}

    def __init__(
        self, src: SomeSubstitutionsType, dst: SomeSubstitutionsType, **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.__src = normalize_to_list_of_substitutions(src)
        self.__dst = normalize_to_list_of_substitutions(dst)

    @property
    def src(self) -> List[Substitution]:
        """The name."""
        return self.__src

    @property
    def dst(self) -> List[Substitution]:
        """The name in its place."""
        return self.__dst

    def execute(self, context: LaunchContext) -> None:
        """Do it."""
        rule = perform_substitutions(context, self.__src), perform_substitutions(
            context, self.__dst)
        # A new list: the one outside of the group stays as it is.
        before = context.launch_configurations.get('ros_remaps', [])
        context.launch_configurations['ros_remaps'] = [*before, rule]
