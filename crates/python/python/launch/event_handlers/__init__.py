"""Event handlers."""

from launch.event_handlers.event_named import event_named
from launch.event_handlers.on_action_event_base import OnActionEventBase
from launch.event_handlers.on_execution_complete import OnExecutionComplete
from launch.event_handlers.on_include_launch_description import OnIncludeLaunchDescription
from launch.event_handlers.on_process_exit import OnProcessExit
from launch.event_handlers.on_process_io import OnProcessIO
from launch.event_handlers.on_process_start import OnProcessStart
from launch.event_handlers.on_shutdown import OnShutdown

__all__ = [
    'OnActionEventBase', 'OnExecutionComplete', 'OnIncludeLaunchDescription', 'OnProcessExit',
    'OnProcessIO', 'OnProcessStart', 'OnShutdown', 'event_named',
]
