"""Action: load components into a container that runs."""

from __future__ import annotations

import asyncio
import pathlib

import launch.logging
from launch.action import Action
from launch.frontend.expose import expose_action
from launch.plan import plan_of
from launch.some_substitutions_type import SomeSubstitutionsType_types_tuple
from launch.utilities import (
    ensure_argument_type, normalize_to_list_of_substitutions, perform_substitutions,
)

from launch_ros.actions.composable_node_container import (
    ComposableNodeContainer, parse_composable_nodes,
)
from launch_ros.parameter_descriptions import ParameterFile
from launch_ros.ros_adapters import get_ros_node
from launch_ros.utilities import (
    add_node_name, evaluate_parameters, get_node_name_count, make_namespace_absolute,
    normalize_parameter_dict, prefix_namespace, to_parameters_list,
)
from launch_ros.utilities.service_calls import call_service
from launch_ros.utilities.to_parameters_list import named_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Text, Tuple, Type, Union

    from composition_interfaces.srv import LoadNode
    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

    from launch_ros.descriptions import ComposableNode


@expose_action('load_composable_node')
class LoadComposableNodes(Action):
    """Loads components into a container that runs, one after the other."""

    def __init__(
        self,
        *,
        composable_node_descriptions: List[ComposableNode],
        target_container: Union[SomeSubstitutionsType, ComposableNodeContainer],
        **kwargs: Any,
    ) -> None:
        """
        Make an action.

        :param target_container: The action of the container, or its full name.
        """
        ensure_argument_type(
            target_container, [*SomeSubstitutionsType_types_tuple, ComposableNodeContainer],
            'target_container', 'LoadComposableNodes')
        super().__init__(**kwargs)
        self.__composable_node_descriptions = composable_node_descriptions
        self.__target_container = target_container
        self.__loads: List[asyncio.Task] = []
        self.__logger = launch.logging.get_logger('launch_ros.actions.load_composable_nodes')

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser,
    ) -> Tuple[Type[LoadComposableNodes], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['target_container'] = parser.parse_substitution(entity.get_attr('target'))
        kwargs['composable_node_descriptions'] = parse_composable_nodes(
            entity, parser, optional=False)
        return cls, kwargs

    def execute(self, context: LaunchContext) -> None:
        """Load the components as soon as the container's service is there."""
        target = self.__target_container
        if isinstance(target, ComposableNodeContainer):
            container = target.node_name
        else:
            container = perform_substitutions(
                context, normalize_to_list_of_substitutions(target))
        components = [
            each for each in self.__composable_node_descriptions
            if each.condition() is None or each.condition().evaluate(context)]
        if context.plan is not None:
            context.plan.add(
                'load', f'load into {container}', container=container,
                components=[_planned(each, context) for each in components])
            return
        requests = [get_composable_node_load_request(each, context) for each in components]
        if requests:
            load = context.asyncio_loop.create_task(
                self.__load_in_sequence(container, requests, context))
            context.add_completion_future(load)
            self.__loads.append(load)
            load.add_done_callback(self.__loads.remove)

    def _cancel(self) -> bool:
        """Load no more, as the container has ended; return whether components were left."""
        loads = [load for load in self.__loads if not load.done()]
        for load in loads:
            self.__logger.warning('the container has ended before all components were loaded')
            load.cancel()
        return bool(loads)

    async def __load_in_sequence(
        self, container: Text, requests: List[LoadNode.Request], context: LaunchContext,
    ) -> None:
        from composition_interfaces.srv import LoadNode
        if context.is_shutdown:
            return
        node = get_ros_node(context)
        client = node.create_client(LoadNode, f'{container}/_container/load_node')
        try:
            for request in requests:
                response = await call_service(client, request, context, self.__logger)
                if response is None:
                    return
                self.__report(container, request, response, context)
        finally:
            # The end of the launch destroys the node with all its clients.
            if not context.is_shutdown:
                node.destroy_client(client)

    def __report(
        self,
        container: Text,
        request: LoadNode.Request,
        response: LoadNode.Response,
        context: LaunchContext,
    ) -> None:
        name = response.full_node_name or request.node_name
        if not response.success:
            context._set_is_failed()
            self.__logger.error(
                f"Failed to load node '{name}' of type '{request.plugin_name}' in container "
                f"'{container}': {response.error_message}")
            return
        add_node_name(context, name)
        count = get_node_name_count(context, name)
        if count > 1:
            launch.logging.get_logger(container).warning(
                f'there are now at least {count} nodes with the name {name} created within '
                'this launch context')
        self.__logger.info(f"Loaded node '{name}' in container '{container}'")


class _EvaluatedComponent:
    """A component with all substitutions performed; parameters are not merged yet."""

    def __init__(self, description: ComposableNode, context: LaunchContext) -> None:
        def text(parts: Any) -> Optional[str]:
            return None if parts is None else perform_substitutions(context, list(parts))

        configurations = context.launch_configurations
        self.package = text(description.package)
        self.plugin = text(description.node_plugin)
        self.name = text(description.node_name) or ''
        self.namespace = make_namespace_absolute(prefix_namespace(
            configurations.get('ros_namespace', None), text(description.node_namespace)))
        self.remaps = [
            f'{source}:={target}'
            for source, target in configurations.get('ros_remaps', None) or ()]
        self.remaps += [
            f'{text(source)}:={text(target)}' for source, target in description.remappings or ()]
        parameters = [
            _global_parameters(each)
            for each in configurations.get('global_params', None) or ()
            if isinstance(each, tuple) or not _is_missing(pathlib.Path(each).resolve(), context)]
        parameters += description.parameters or ()
        self.parameters = tuple(
            each for each in evaluate_parameters(context, parameters)
            if not isinstance(each, pathlib.Path) or not _is_missing(each, context))
        self.extra_arguments = evaluate_parameters(context, description.extra_arguments or ())


def _is_missing(path: pathlib.Path, context: LaunchContext) -> bool:
    """Return whether a plan gets to know that the parameter file is not there."""
    plan = plan_of(context)
    if plan is None or path.is_file():
        return False
    plan.add_missing(f"parameter file '{path}' is not there")
    return True


def _global_parameters(each: Any) -> Any:
    if isinstance(each, tuple):
        return normalize_parameter_dict({each[0]: each[1]})
    path = pathlib.Path(each).resolve()
    if not path.is_file():
        raise RuntimeError(f"parameter file '{path}' is not there")
    return ParameterFile(path)


def _planned(description: ComposableNode, context: LaunchContext) -> Dict[str, Any]:
    component = _EvaluatedComponent(description, context)

    def values(parameters: Any) -> Dict[str, Any]:
        return dict(named_values(context, component.name, component.namespace, parameters))

    return {
        'package': component.package,
        'plugin': component.plugin,
        'name': component.name,
        'namespace': component.namespace or '',
        'parameters': values(component.parameters),
        'remaps': component.remaps,
        'extra_arguments': values(component.extra_arguments),
    }


def get_composable_node_load_request(
    composable_node_description: ComposableNode, context: LaunchContext,
) -> Optional[LoadNode.Request]:
    """Return the request that loads a component; ``None`` if its condition does not hold."""
    condition = composable_node_description.condition()
    if condition is not None and not condition.evaluate(context):
        return None
    from composition_interfaces.srv import LoadNode
    component = _EvaluatedComponent(composable_node_description, context)
    request = LoadNode.Request()
    request.package_name = component.package
    request.plugin_name = component.plugin
    request.node_name = component.name
    if component.namespace is not None:
        request.node_namespace = component.namespace
    request.remap_rules = component.remaps

    def messages(parameters: Any) -> List[Any]:
        return [
            each.to_parameter_msg() for each in to_parameters_list(
                context, component.name, component.namespace, parameters)]

    request.parameters = messages(component.parameters)
    request.extra_arguments = messages(component.extra_arguments)
    return request
