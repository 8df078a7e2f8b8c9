"""Lifecycle nodes: nodes with the states unconfigured, inactive, active and finalized."""

from rclpy.lifecycle.managed_entity import (
    ManagedEntity, SimpleManagedEntity, TransitionCallbackReturn,
)
from rclpy.lifecycle.node import LifecycleNode, LifecycleNodeMixin, LifecycleState
from rclpy.lifecycle.publisher import LifecyclePublisher

# Names as in `from rclpy.lifecycle import Node`. They are not in __all__, because a star import
# would hide rclpy.node.Node.
Node = LifecycleNode
NodeMixin = LifecycleNodeMixin
State = LifecycleState
Publisher = LifecyclePublisher

__all__ = [
    'LifecycleNode', 'LifecycleNodeMixin', 'LifecyclePublisher', 'LifecycleState',
    'ManagedEntity', 'SimpleManagedEntity', 'TransitionCallbackReturn',
]
