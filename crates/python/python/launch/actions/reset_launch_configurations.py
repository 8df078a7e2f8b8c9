"""Action: forget the launch configurations."""

from __future__ import annotations

from typing import List

from launch.action import Action
from launch.frontend import Entity
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple, Type

    from launch.frontend import Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


def kept_configurations(entity: Entity, parser: Parser) -> Optional[Dict[Any, Any]]:
    """Return the configurations of the elements ``keep``; ``None`` without one."""
    kept = entity.get_attr('keep', data_type=List[Entity], optional=True)
    if kept is None:
        return None
    configurations = {
        tuple(parser.parse_substitution(each.get_attr('name'))):
            parser.parse_substitution(each.get_attr('value'))
        for each in kept}
    for each in kept:
        each.assert_entity_completely_parsed()
    return configurations


@expose_action('reset')
class ResetLaunchConfigurations(Action):
    """Forgets all launch configurations but the given ones."""

    def __init__(
        self,
        launch_configurations: Optional[
            Dict[SomeSubstitutionsType, SomeSubstitutionsType]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.__launch_configurations = launch_configurations or {}

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[ResetLaunchConfigurations], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kept = kept_configurations(entity, parser)
        if kept is not None:
            kwargs['launch_configurations'] = kept
        return cls, kwargs

    def execute(self, context: LaunchContext) -> None:
        """Do it; values may refer to configurations that are forgotten."""
        def text(part: SomeSubstitutionsType) -> str:
            return perform_substitutions(context, normalize_to_list_of_substitutions(part))

        kept = {text(name): text(value) for name, value in self.__launch_configurations.items()}
        context.launch_configurations.clear()
        context.launch_configurations.update(kept)
