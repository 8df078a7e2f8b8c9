"""Launch of ROS nodes: actions, descriptions, events and substitutions."""

from launch_ros import (
    actions, descriptions, event_handlers, events, ros_adapters, substitutions, utilities,
)

__all__ = [
    'actions', 'descriptions', 'event_handlers', 'events', 'ros_adapters', 'substitutions',
    'utilities',
]
