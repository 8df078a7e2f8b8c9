"""Actions: entities that do something when they are visited."""

from launch.actions.append_environment_variable import AppendEnvironmentVariable
from launch.actions.declare_launch_argument import DeclareLaunchArgument
from launch.actions.emit_event import EmitEvent
from launch.actions.execute_local import ExecuteLocal
from launch.actions.execute_process import ExecuteProcess
from launch.actions.for_loop import ForEach, ForLoop
from launch.actions.group_action import GroupAction
from launch.actions.include_launch_description import IncludeLaunchDescription
from launch.actions.log_info import LogDebug, LogError, LogInfo, LogWarning
from launch.actions.opaque_coroutine import OpaqueCoroutine
from launch.actions.opaque_function import OpaqueFunction
from launch.actions.pop_environment import PopEnvironment
from launch.actions.pop_launch_configurations import PopLaunchConfigurations
from launch.actions.push_environment import PushEnvironment
from launch.actions.push_launch_configurations import PushLaunchConfigurations
from launch.actions.register_event_handler import RegisterEventHandler
from launch.actions.reset_environment import ResetEnvironment
from launch.actions.reset_launch_configurations import ResetLaunchConfigurations
from launch.actions.set_environment_variable import SetEnvironmentVariable
from launch.actions.set_launch_configuration import SetLaunchConfiguration
from launch.actions.shutdown_action import Shutdown
from launch.actions.timer_action import TimerAction
from launch.actions.unregister_event_handler import UnregisterEventHandler
from launch.actions.unset_environment_variable import UnsetEnvironmentVariable
from launch.actions.unset_launch_configuration import UnsetLaunchConfiguration

__all__ = [
    'AppendEnvironmentVariable', 'DeclareLaunchArgument', 'EmitEvent', 'ExecuteLocal',
    'ExecuteProcess', 'ForEach', 'ForLoop', 'GroupAction', 'IncludeLaunchDescription',
    'LogDebug', 'LogError', 'LogInfo', 'LogWarning', 'OpaqueCoroutine', 'OpaqueFunction',
    'PopEnvironment', 'PopLaunchConfigurations', 'PushEnvironment', 'PushLaunchConfigurations',
    'RegisterEventHandler', 'ResetEnvironment', 'ResetLaunchConfigurations',
    'SetEnvironmentVariable', 'SetLaunchConfiguration', 'Shutdown', 'TimerAction',
    'UnregisterEventHandler', 'UnsetEnvironmentVariable', 'UnsetLaunchConfiguration',
]
