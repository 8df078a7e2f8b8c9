"""Actions of ROS nodes."""

from launch_ros.actions.composable_node_container import ComposableNodeContainer
from launch_ros.actions.lifecycle_node import LifecycleNode
from launch_ros.actions.lifecycle_transition import LifecycleTransition
from launch_ros.actions.load_composable_nodes import LoadComposableNodes
from launch_ros.actions.node import Node
from launch_ros.actions.push_ros_namespace import PushROSNamespace, PushRosNamespace
from launch_ros.actions.ros_timer import ROSTimer, RosTimer
from launch_ros.actions.set_parameter import SetParameter
from launch_ros.actions.set_parameters_from_file import SetParametersFromFile
from launch_ros.actions.set_remap import SetRemap
from launch_ros.actions.set_ros_log_dir import SetROSLogDir
from launch_ros.actions.set_use_sim_time import SetUseSimTime

__all__ = [
    'ComposableNodeContainer', 'LifecycleNode', 'LifecycleTransition', 'LoadComposableNodes',
    'Node', 'PushROSNamespace', 'PushRosNamespace', 'ROSTimer', 'RosTimer', 'SetParameter',
    'SetParametersFromFile', 'SetROSLogDir', 'SetRemap', 'SetUseSimTime',
]
