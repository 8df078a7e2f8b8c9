"""Composable node: a component to load into a container."""

from __future__ import annotations

from typing import List

from launch.conditions import conditions_of_entity
from launch.frontend import Entity
from launch.utilities import normalize_to_list_of_substitutions

from launch_ros.utilities import normalize_parameters, normalize_remap_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple, Type

    from launch.condition import Condition
    from launch.frontend import Parser
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution

    from launch_ros.parameters_type import Parameters, SomeParameters
    from launch_ros.remap_rule_type import RemapRules, SomeRemapRules


class ComposableNode:
    """A component to load into a container."""

    def __init__(
        self,
        *,
        package: SomeSubstitutionsType,
        plugin: SomeSubstitutionsType,
        name: Optional[SomeSubstitutionsType] = None,
        namespace: Optional[SomeSubstitutionsType] = None,
        parameters: Optional[SomeParameters] = None,
        remappings: Optional[SomeRemapRules] = None,
        extra_arguments: Optional[SomeParameters] = None,
        condition: Optional[Condition] = None,
    ) -> None:
        self.__package = normalize_to_list_of_substitutions(package)
        self.__node_plugin = normalize_to_list_of_substitutions(plugin)
        self.__node_name = None if name is None else normalize_to_list_of_substitutions(name)
        self.__node_namespace = (
            None if namespace is None else normalize_to_list_of_substitutions(namespace))
        self.__parameters = None if parameters is None else normalize_parameters(parameters)
        self.__remappings = list(normalize_remap_rules(remappings)) if remappings else None
        self.__extra_arguments = (
            normalize_parameters(extra_arguments) if extra_arguments else None)
        self.__condition = condition

    @classmethod
    def parse(
        cls, parser: Parser, entity: Entity,
    ) -> Tuple[Type[ComposableNode], Dict[str, Any]]:
        """Return the class and its arguments."""
        from launch_ros.actions.node import Node, parse_remappings
        kwargs: Dict[str, Any] = {
            'package': parser.parse_substitution(entity.get_attr('pkg')),
            'plugin': parser.parse_substitution(entity.get_attr('plugin')),
            'name': parser.parse_substitution(entity.get_attr('name')),
            **conditions_of_entity(entity, parser),
        }
        namespace = entity.get_attr('namespace', optional=True)
        if namespace is not None:
            kwargs['namespace'] = parser.parse_substitution(namespace)
        parameters = entity.get_attr('param', data_type=List[Entity], optional=True)
        if parameters is not None:
            kwargs['parameters'] = Node.parse_nested_parameters(parameters, parser)
        remappings = parse_remappings(entity, parser)
        if remappings is not None:
            kwargs['remappings'] = remappings
        arguments = entity.get_attr('extra_arg', data_type=List[Entity], optional=True)
        if arguments is not None:
            kwargs['extra_arguments'] = [
                {tuple(parser.parse_substitution(each.get_attr('name'))):
                    parser.parse_substitution(each.get_attr('value'))}
                for each in arguments]
            for each in arguments:
                each.assert_entity_completely_parsed()
        entity.assert_entity_completely_parsed()
        return cls, kwargs

    @property
    def package(self) -> List[Substitution]:
        """The component's package."""
        return self.__package

    @property
    def node_plugin(self) -> List[Substitution]:
        """The component's class."""
        return self.__node_plugin

    @property
    def node_name(self) -> Optional[List[Substitution]]:
        """The node's name; ``None`` for the component's own."""
        return self.__node_name

    @property
    def node_namespace(self) -> Optional[List[Substitution]]:
        """The node's namespace."""
        return self.__node_namespace

    @property
    def parameters(self) -> Optional[Parameters]:
        """The parameters."""
        return self.__parameters

    @property
    def remappings(self) -> Optional[RemapRules]:
        """The remapping rules."""
        return self.__remappings

    @property
    def extra_arguments(self) -> Optional[Parameters]:
        """Arguments for the container, such as ``use_intra_process_comms``."""
        return self.__extra_arguments

    def condition(self) -> Optional[Condition]:
        """Return the condition."""
        return self.__condition
