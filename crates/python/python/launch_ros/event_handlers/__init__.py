"""Event handlers of ROS nodes."""

from launch_ros.event_handlers.on_state_transition import OnStateTransition

__all__ = ['OnStateTransition']
