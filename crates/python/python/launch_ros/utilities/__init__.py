"""Functions that actions and substitutions share."""

from launch_ros.utilities.evaluate_parameters import (
    evaluate_parameter_dict, evaluate_parameters,
)
from launch_ros.utilities.namespace_utils import (
    is_namespace_absolute, is_root_namespace, make_namespace_absolute, prefix_namespace,
)
from launch_ros.utilities.normalize_parameters import (
    normalize_parameter_dict, normalize_parameters,
)
from launch_ros.utilities.normalize_remap_rule import (
    normalize_remap_rule, normalize_remap_rules,
)
from launch_ros.utilities.to_parameters_list import to_parameters_list
from launch_ros.utilities.track_node_names import add_node_name, get_node_name_count

evaluate_parameters_dict = evaluate_parameter_dict
normalize_parameters_dict = normalize_parameter_dict

__all__ = [
    'add_node_name', 'evaluate_parameter_dict', 'evaluate_parameters',
    'evaluate_parameters_dict', 'get_node_name_count', 'is_namespace_absolute',
    'is_root_namespace', 'make_namespace_absolute', 'normalize_parameter_dict',
    'normalize_parameters', 'normalize_parameters_dict', 'normalize_remap_rule',
    'normalize_remap_rules', 'prefix_namespace', 'to_parameters_list',
]
