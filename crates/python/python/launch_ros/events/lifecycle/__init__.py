"""Events of lifecycle nodes."""

from launch_ros.events.lifecycle.change_state import ChangeState
from launch_ros.events.lifecycle.lifecycle_node_matchers import matches_node_name
from launch_ros.events.lifecycle.state_transition import StateTransition

__all__ = ['ChangeState', 'StateTransition', 'matches_node_name']
