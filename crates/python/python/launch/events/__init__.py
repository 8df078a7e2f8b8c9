"""Events."""

from launch.events import process
from launch.events.execution_complete import ExecutionComplete
from launch.events.include_launch_description import IncludeLaunchDescription
from launch.events.matchers import matches_action
from launch.events.shutdown import Shutdown
from launch.events.timer_event import TimerEvent

__all__ = [
    'ExecutionComplete', 'IncludeLaunchDescription', 'Shutdown', 'TimerEvent', 'matches_action',
    'process',
]
