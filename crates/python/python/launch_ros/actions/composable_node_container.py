"""Action: start a component container, and load components into it."""

from __future__ import annotations

from typing import List

from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.frontend import Entity
from launch.frontend.expose import expose_action

from launch_ros.actions.node import Node
from launch_ros.descriptions import ComposableNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple, Type

    from launch.event import Event
    from launch.frontend import Parser
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType

    from launch_ros.actions.load_composable_nodes import LoadComposableNodes


def parse_composable_nodes(
    entity: Entity, parser: Parser, *, optional: bool,
) -> Optional[List[ComposableNode]]:
    """Return the components of the elements ``composable_node``."""
    entities = entity.get_attr('composable_node', data_type=List[Entity], optional=optional)
    if entities is None:
        return None
    parsed = [ComposableNode.parse(parser, each) for each in entities]
    return [component_class(**kwargs) for component_class, kwargs in parsed]


@expose_action('node_container')
class ComposableNodeContainer(Node):
    """
    Starts a component container, and loads components into it.

    If it is started again, they are loaded again.
    """

    def __init__(
        self,
        *,
        name: SomeSubstitutionsType,
        namespace: SomeSubstitutionsType,
        composable_node_descriptions: Optional[List[ComposableNode]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, namespace=namespace, **kwargs)
        self.__composable_node_descriptions = composable_node_descriptions
        self.__starts = 0

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser, ignore: Optional[List[str]] = None,
    ) -> Tuple[Type[ComposableNodeContainer], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser, ignore)
        components = parse_composable_nodes(entity, parser, optional=True)
        if components is not None:
            kwargs['composable_node_descriptions'] = components
        return cls, kwargs

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Start the container, and return the actions that load the components."""
        components = [
            each for each in self.__composable_node_descriptions or ()
            if each.condition() is None or each.condition().evaluate(context)]
        actions = super().execute(context)
        if not components:
            return actions
        from launch_ros.actions.load_composable_nodes import LoadComposableNodes
        load = LoadComposableNodes(
            composable_node_descriptions=components, target_container=self)
        if context.plan is None:
            context.register_event_handler(OnProcessStart(
                target_action=self, on_start=lambda event, _: self.__load_again(event, load)))
            context.register_event_handler(OnProcessExit(
                target_action=self,
                on_exit=lambda event, context: self.__load_no_more(load, context)))
        return [*(actions or ()), load]

    def __load_no_more(self, load: LoadComposableNodes, context: LaunchContext) -> None:
        is_left = load._cancel()
        if is_left and not self._starts_again and not context.is_shutdown:
            context._set_is_failed()

    def __load_again(
        self, event: Event, load: LaunchDescriptionEntity,
    ) -> Optional[LaunchDescriptionEntity]:
        self.__starts += 1
        return load if self.__starts > 1 else None
