"""Action: start a process with a ROS node."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
from typing import List

import launch.logging
from launch.actions import ExecuteProcess
from launch.frontend import Entity
from launch.frontend.expose import expose_action
from launch.frontend.type_utils import get_data_type_from_identifier
from launch.launch_guard import write_temporary_file
from launch.plan import plan_of
from launch.substitutions import LocalSubstitution, TextSubstitution
from launch.utilities import (
    ensure_argument_type, normalize_to_list_of_substitutions, perform_substitutions,
)
from launch.utilities.yaml_writer import yaml_text

from launch_ros.parameter_descriptions import Parameter, ParameterFile, ParameterValue
from launch_ros.substitutions import ExecutableInPackage
from launch_ros.utilities import (
    add_node_name, evaluate_parameters, get_node_name_count, make_namespace_absolute,
    normalize_parameters, normalize_remap_rules, plugin_support, prefix_namespace,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any, Dict, Iterable, Optional, Text, Tuple, Type

    from launch.frontend import Parser
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType

    from launch_ros.parameters_type import SomeParameters
    from launch_ros.remap_rule_type import SomeRemapRules

EXTENSION_GROUP = 'launch_ros.node_action'
"""Entry points of packages that change the command of nodes."""


class NodeActionExtension:
    """Base of the extensions that change the command of nodes."""

    NAME: Optional[str] = None
    EXTENSION_POINT_VERSION = '0.1'

    def __init__(self) -> None:
        super().__init__()
        plugin_support.satisfies_version(self.EXTENSION_POINT_VERSION, '^0.1')

    def prepare_for_execute(
        self, context: LaunchContext, ros_specific_arguments: Dict[str, Any], node_action: Node,
    ) -> Tuple[List[Any], Dict[str, Any]]:
        """Return parts to add to the command, and the changed ROS arguments."""
        return [], ros_specific_arguments


def parse_remappings(entity: Entity, parser: Parser) -> Optional[List[Tuple[Any, Any]]]:
    """Return the rules of the elements ``remap``; ``None`` without one."""
    entities = entity.get_attr('remap', data_type=List[Entity], optional=True)
    if entities is None:
        return None
    rules = [
        (parser.parse_substitution(each.get_attr('from')),
         parser.parse_substitution(each.get_attr('to')))
        for each in entities]
    for each in entities:
        each.assert_entity_completely_parsed()
    return rules


def _parse_named_parameter(entity: Entity, parser: Parser) -> Dict[Any, Any]:
    """Return the mapping of an element ``param`` with a name: a value, or further ones."""
    name = tuple(parser.parse_substitution(entity.get_attr('name')))
    type_name = entity.get_attr('type', data_type=None, optional=True)
    data_type = None if type_name is None else get_data_type_from_identifier(type_name)
    value = entity.get_attr('value', data_type=data_type, optional=True)
    nested = entity.get_attr('param', data_type=List[Entity], optional=True)
    entity.assert_entity_completely_parsed()
    if nested and value is not None:
        raise RuntimeError('nested parameters and value attributes are mutually exclusive')
    if nested and data_type is not None:
        raise RuntimeError('nested parameters and type attributes are mutually exclusive')
    if value is not None:
        value = parser.parse_if_substitutions(value)
        if isinstance(value, str) and data_type is not None:
            # In YAML, a text in quotes may have any type.
            value = TextSubstitution(text=value)
        return {name: ParameterValue(value, value_type=data_type)}
    if not nested:
        raise RuntimeError('either a value attribute or nested params are needed')
    inner: Dict[Any, Any] = {}
    for each in nested:
        inner.update(_parse_named_parameter(each, parser))
    return {name: inner}


def _parse_parameter_file(entity: Entity, parser: Parser) -> ParameterFile:
    path = parser.parse_substitution(entity.get_attr('from'))
    allow = entity.get_attr('allow_substs', data_type=bool, optional=True)
    allow = parser.parse_substitution(allow) if isinstance(allow, str) else bool(allow)
    entity.assert_entity_completely_parsed()
    return ParameterFile(path, allow_substs=allow)


def _validate(name: str, namespace: Optional[str]) -> None:
    """Check a node's name and namespace."""
    from rclpy.validate_namespace import validate_namespace
    from rclpy.validate_node_name import validate_node_name
    if name != Node.UNSPECIFIED_NODE_NAME:
        validate_node_name(name)
    if namespace is not None:
        validate_namespace(namespace)


@expose_action('node')
class Node(ExecuteProcess):
    """Starts a process with a ROS node."""

    UNSPECIFIED_NODE_NAME = '<node_name_unspecified>'
    UNSPECIFIED_NODE_NAMESPACE = '<node_namespace_unspecified>'

    def __init__(
        self,
        *,
        executable: SomeSubstitutionsType,
        package: Optional[SomeSubstitutionsType] = None,
        name: Optional[SomeSubstitutionsType] = None,
        namespace: Optional[SomeSubstitutionsType] = None,
        exec_name: Optional[SomeSubstitutionsType] = None,
        parameters: Optional[SomeParameters] = None,
        remappings: Optional[SomeRemapRules] = None,
        ros_arguments: Optional[Iterable[SomeSubstitutionsType]] = None,
        arguments: Optional[Iterable[SomeSubstitutionsType]] = None,
        **kwargs: Any,
    ) -> None:
        """
        Make an action; further arguments are those of ExecuteProcess.

        :param executable: The program in the package; without a package a path, or a
            program on PATH.
        :param name: The node's name; without one it is the program's own, and parameters
            are for all nodes of the process.
        :param exec_name: The beginning of the process's name.
        :param parameters: Mappings, parameters, and the paths of files.
        :param remappings: Pairs of names.
        :param ros_arguments: Arguments behind ``--ros-args``.
        :param arguments: Other arguments.
        """
        command: List[Any] = [
            executable if package is None
            else ExecutableInPackage(package=package, executable=executable)]
        command.extend(arguments or ())
        if ros_arguments is not None:
            command.extend(['--ros-args', *ros_arguments])
        command.append('--ros-args')
        if name is not None:
            command.extend(['-r', LocalSubstitution(
                "ros_specific_arguments['name']", description='node name')])
        if parameters is not None:
            ensure_argument_type(parameters, list, 'parameters', 'Node')
            parameters = normalize_parameters(parameters)
        super().__init__(cmd=command, name=exec_name, **kwargs)
        self.__package = package
        self.__node_executable = executable
        self.__node_name = name
        self.__node_namespace = namespace
        self.__parameters = parameters or ()
        self.__remappings = [] if remappings is None else list(normalize_remap_rules(remappings))
        self.__ros_arguments = ros_arguments
        self.__arguments = arguments
        self.__expanded_node_name = self.UNSPECIFIED_NODE_NAME
        self.__expanded_node_namespace = self.UNSPECIFIED_NODE_NAMESPACE
        self.__expanded_parameter_arguments: Optional[List[Tuple[Text, bool]]] = None
        self.__expanded_remappings: Optional[List[Tuple[Text, Text]]] = None
        self.__final_node_name: Optional[Text] = None
        self.__planned_parameters: List[Any] = []
        self.__is_performed = False
        self.__logger = launch.logging.get_logger('launch_ros.actions.node')
        self.__extensions = get_extensions(self.__logger)

    @staticmethod
    def parse_nested_parameters(params: List[Entity], parser: Parser) -> List[Any]:
        """Return the mappings and files of the elements ``param``."""
        parameters: List[Any] = []
        for each in params:
            is_file = each.get_attr('from', optional=True) is not None
            is_named = each.get_attr('name', optional=True) is not None
            if is_file and is_named:
                raise RuntimeError('name and from attributes are mutually exclusive')
            if is_file:
                parameters.append(_parse_parameter_file(each, parser))
            elif not is_named:
                raise ValueError('param Entity should have name or from attribute')
            elif each.get_attr('allow_substs', data_type=bool, optional=True) is not None:
                raise RuntimeError(
                    "'allow_substs' can only be used together with 'from' attribute")
            else:
                parameters.append(_parse_named_parameter(each, parser))
        return parameters

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser, ignore: Optional[List[str]] = None,
    ) -> Tuple[Type[Node], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser, ignore=['cmd', *(ignore or ())])
        for attribute, argument in (('args', 'arguments'), ('ros_args', 'ros_arguments')):
            text = entity.get_attr(attribute, optional=True)
            if text is not None:
                kwargs[argument] = cls._parse_cmdline(text, parser)
        for attribute, argument in (
                ('name', 'name'), ('exec_name', 'exec_name'), ('pkg', 'package'),
                ('namespace', 'namespace')):
            text = entity.get_attr(attribute, optional=True)
            if text is not None:
                kwargs[argument] = parser.parse_substitution(text)
        kwargs['executable'] = parser.parse_substitution(entity.get_attr('exec'))
        remappings = parse_remappings(entity, parser)
        if remappings is not None:
            kwargs['remappings'] = remappings
        parameters = entity.get_attr('param', data_type=List[Entity], optional=True)
        if parameters is not None:
            kwargs['parameters'] = cls.parse_nested_parameters(parameters, parser)
        return cls, kwargs

    # --- what it is ---------------------------------------------------------------------

    @property
    def node_package(self) -> Optional[SomeSubstitutionsType]:
        """The package."""
        return self.__package

    @property
    def node_executable(self) -> SomeSubstitutionsType:
        """The program."""
        return self.__node_executable

    @property
    def node_name(self) -> Text:
        """
        The node's full name.

        :raises RuntimeError: before the action is carried out.
        """
        if self.__final_node_name is None:
            raise RuntimeError("cannot access 'node_name' before executing action")
        return self.__final_node_name

    @property
    def expanded_node_namespace(self) -> Text:
        """The namespace, once the action is carried out."""
        return self.__expanded_node_namespace

    @property
    def expanded_remapping_rules(self) -> Optional[List[Tuple[Text, Text]]]:
        """The remapping rules, once the action is carried out."""
        return self.__expanded_remappings

    def is_node_name_fully_specified(self) -> bool:
        """Return whether name and namespace are known."""
        return not any(
            part in self.node_name
            for part in (self.UNSPECIFIED_NODE_NAME, self.UNSPECIFIED_NODE_NAMESPACE))

    # --- evaluation ---------------------------------------------------------------------

    def __add_arguments(self, *arguments: Any) -> None:
        self.process_description.cmd.extend(
            normalize_to_list_of_substitutions(each) for each in arguments)

    def _perform_substitutions(self, context: LaunchContext) -> None:
        """Evaluate all substitutions, once."""
        if self.__is_performed:
            return
        self.__is_performed = True
        self.__perform_names(context)
        self.__expanded_parameter_arguments = []
        sources: List[Tuple[str, str, str]] = []
        for each in context.launch_configurations.get('global_params', None) or ():
            if isinstance(each, tuple):
                name, value = each
                self.__planned_parameters.append({name: value})
                sources.append(('argument', name, yaml_text(value)))
            else:
                self.__add_file(context, os.path.abspath(each), sources)
        self.__add_parameter_arguments(context, sources, keep_values=False)
        sources = []
        for each in evaluate_parameters(context, self.__parameters):
            self.__add_parameters(context, each, sources)
        self.__add_parameter_arguments(context, sources, keep_values=True)
        rules = list(context.launch_configurations.get('ros_remaps', None) or ())
        rules.extend(
            (perform_substitutions(context, source), perform_substitutions(context, target))
            for source, target in self.__remappings)
        if rules:
            self.__expanded_remappings = rules
        for source, target in rules:
            self.__add_arguments('-r', f'{source}:={target}')

    def __perform_names(self, context: LaunchContext) -> None:
        def text(part: Any) -> Optional[str]:
            if part is None:
                return None
            return perform_substitutions(context, normalize_to_list_of_substitutions(part))

        try:
            if self.__node_name is not None:
                self.__expanded_node_name = text(self.__node_name)
            namespace = make_namespace_absolute(prefix_namespace(
                context.launch_configurations.get('ros_namespace', None),
                text(self.__node_namespace)))
            if namespace is not None:
                self.__expanded_node_namespace = namespace
                self.__add_arguments('-r', LocalSubstitution("ros_specific_arguments['ns']"))
            _validate(self.__expanded_node_name, namespace)
        except Exception:
            self.__logger.error(
                'Error while expanding or validating node name or namespace for '
                f"'package={self.__package}, executable={self.__node_executable}, "
                f"name={self.__node_name}, namespace={self.__node_namespace}':")
            raise
        self.__final_node_name = prefix_namespace(
            self.__expanded_node_namespace, self.__expanded_node_name)

    def __add_parameters(
        self, context: LaunchContext, parameters: Any, sources: List[Tuple[str, str, str]],
    ) -> None:
        if isinstance(parameters, pathlib.Path):
            self.__add_file(context, str(parameters), sources)
        elif isinstance(parameters, Parameter):
            name, value = parameters.evaluate(context)
            self.__planned_parameters.append({name: value})
            sources.append(('argument', name, yaml_text(value)))
        elif isinstance(parameters, dict):
            self.__planned_parameters.append(parameters)
            sources.extend(_values(parameters))
        else:
            raise RuntimeError(f'invalid normalized parameters {parameters!r}')

    def __add_file(
        self, context: LaunchContext, path: str, sources: List[Tuple[str, str, str]],
    ) -> None:
        if os.path.isfile(path):
            self.__planned_parameters.append(path)
            sources.append(('file', path, ''))
            return
        plan = plan_of(context)
        if plan is None:
            self.__logger.warning(f'Parameter file path is not a file: {path}')
        else:
            plan.add_missing(f"parameter file '{path}' is not there")

    def __add_parameter_arguments(
        self, context: LaunchContext, sources: List[Tuple[str, str, str]], *, keep_values: bool,
    ) -> None:
        """Add what the native module makes of sources; it may join those of one node."""
        from pteros import _native
        for flag, word in _native.node_parameter_arguments(self.__file_key(), sources):
            if flag is None:
                flag, word = '--params-file', write_temporary_file(context, word)
            is_file = flag == '--params-file'
            if is_file or keep_values:
                self.__expanded_parameter_arguments.append((word, is_file))
            self.__add_arguments(flag, word)

    def __file_key(self) -> Optional[str]:
        return self.node_name if self.is_node_name_fully_specified() else None

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Start the process."""
        self._perform_substitutions(context)
        arguments: Dict[str, Any] = {}
        if self.__node_name is not None:
            arguments['name'] = f'__node:={self.__expanded_node_name}'
        if self.__expanded_node_namespace != '':
            arguments['ns'] = f'__ns:={self.__expanded_node_namespace}'
        for extension in self.__extensions.values():
            command, arguments = extension.prepare_for_execute(context, arguments, self)
            self.__add_arguments(*command)
        context.extend_locals({'ros_specific_arguments': arguments})
        result = super().execute(context)
        if self.is_node_name_fully_specified():
            add_node_name(context, self.node_name)
            count = get_node_name_count(context, self.node_name)
            if count > 1:
                launch.logging.get_logger(self.name).warning(
                    f'there are now at least {count} nodes with the name {self.node_name} '
                    'created within this launch context')
        return result

    def _add_to_plan(self, context: LaunchContext, **details: Any) -> None:
        """Add the node to the plan."""
        def text(part: Any) -> Optional[str]:
            if part is None:
                return None
            return perform_substitutions(context, normalize_to_list_of_substitutions(part))

        name, namespace = self.__expanded_node_name, self.__expanded_node_namespace
        super()._add_to_plan(
            context,
            node={
                'package': text(self.__package),
                'executable': text(self.__node_executable),
                'name': None if name == self.UNSPECIFIED_NODE_NAME else name,
                'namespace': None if namespace == self.UNSPECIFIED_NODE_NAMESPACE else namespace,
            },
            parameters=self.__planned_parameters,
            remaps=[list(rule) for rule in self.__expanded_remappings or ()],
            **details)


def _values(parameters: Dict[str, Any]) -> List[Tuple[str, str, str]]:
    """Return evaluated parameters as sources of the native module."""
    texts = getattr(parameters, 'texts', {})
    return [
        ('value', name, yaml_text(value, texts.get(name))) for name, value in parameters.items()]


def instantiate_extension(
    group_name: str,
    extension_name: str,
    extension_class: Any,
    extensions: Dict[str, Any],
    logger: logging.Logger,
    *,
    unique_instance: bool = False,
) -> Optional[NodeActionExtension]:
    """Return an extension, or ``None`` with a log line if it cannot be made."""
    if not unique_instance and extension_name in extensions:
        return extensions[extension_name]
    try:
        extension = extension_class()
    except Exception as error:
        is_other_version = isinstance(error, plugin_support.PluginException)
        log = logger.warning if is_other_version else logger.error
        log(f"Failed to instantiate '{group_name}' extension '{extension_name}': {error}")
        return None
    if not unique_instance:
        extensions[extension_name] = extension
    return extension


_extension_entry_points: Optional[List[Any]] = None


def get_extensions(logger: logging.Logger) -> Dict[str, NodeActionExtension]:
    """Return new instances of the installed extensions."""
    global _extension_entry_points
    if _extension_entry_points is None:
        _extension_entry_points = list(
            importlib.metadata.entry_points().select(group=EXTENSION_GROUP))
    extensions: Dict[str, NodeActionExtension] = {}
    for entry_point in _extension_entry_points:
        try:
            extension_class = entry_point.load()
        except Exception as error:
            logger.warning(f"Failed to load entry point '{entry_point.name}': {error}")
            continue
        extension = instantiate_extension(
            EXTENSION_GROUP, entry_point.name, extension_class, extensions, logger)
        if extension is not None:
            extension.NAME = entry_point.name
    return extensions
