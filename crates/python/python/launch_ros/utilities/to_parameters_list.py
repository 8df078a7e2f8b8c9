"""Parameters of a component, from mappings and files."""

from __future__ import annotations

import pathlib
import warnings

from launch._regular_file import read_regular
from launch.utilities.yaml_reader import YamlError, load_yaml

from launch_ros.utilities.evaluate_parameters import evaluate_parameter_dict
from launch_ros.utilities.normalize_parameters import normalize_parameter_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

    from launch.launch_context import LaunchContext
    from rclpy.parameter import Parameter

    from launch_ros.parameters_type import EvaluatedParameters


def _by_node(document: Any, keys: List[str], found: Dict[str, Any]) -> Dict[str, Any]:
    """Return the parameters of each node; a node's name has no slash in front."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == 'ros__parameters':
                found['/'.join(keys)] = value
                break
            if isinstance(value, dict):
                _by_node(value, [*keys, str(key).lstrip('/')], found)
    return found


def read_parameter_file(path: pathlib.Path, full_name: str) -> Dict[str, Any]:
    """
    Return the parameters that a file has for a node; all of them if it names no node.

    :param full_name: The node's namespace and name, without a slash in front.
    :raises RuntimeError: if it is not valid YAML.
    """
    try:
        document = load_yaml(read_regular(path)) or {}
    except YamlError as error:
        raise RuntimeError(f"parameter file '{path}': {error}") from error
    by_node = _by_node(document, [], {})
    if not by_node:
        return document
    if not full_name:
        warnings.warn(
            'node name not provided to launch; parameter files will not apply', UserWarning)
    return {**(by_node.get('**') or {}), **(by_node.get(full_name) or {})}


def named_values(
    context: LaunchContext,
    node_name: str,
    namespace: str,
    evaluated_parameters: EvaluatedParameters,
) -> List[Tuple[str, Any]]:
    """Return the parameters of a node from mappings and files; later ones count."""
    full_name = node_name.lstrip('/')
    if namespace and namespace != '/':
        full_name = f"{namespace.strip('/')}/{full_name}"
    pairs: List[Tuple[str, Any]] = []
    for each in evaluated_parameters:
        if isinstance(each, pathlib.Path):
            each = evaluate_parameter_dict(
                context, normalize_parameter_dict(read_parameter_file(each, full_name)))
        elif hasattr(each, 'evaluate'):
            each = dict([each.evaluate(context)])
        if not isinstance(each, dict):
            raise RuntimeError(f'invalid evaluated parameters {each!r}')
        pairs.extend(each.items())
    return pairs


def to_parameters_list(
    context: LaunchContext,
    node_name: str,
    namespace: str,
    evaluated_parameters: EvaluatedParameters,
) -> List[Parameter]:
    """
    Return the parameters of a node from mappings and files.

    :raises RuntimeError: if a value is no valid one.
    """
    from rclpy.parameter import Parameter
    parameters = []
    for name, value in named_values(context, node_name, namespace, evaluated_parameters):
        kind = next((each for each in Parameter.Type if each.check(value)), None)
        if kind is None:
            raise RuntimeError(f'invalid parameter value {value!r}')
        parameters.append(Parameter(name, kind, value))
    return parameters
