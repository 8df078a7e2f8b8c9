"""Matcher of lifecycle nodes; deprecated."""

from __future__ import annotations

import warnings

from launch_ros.events import matchers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch_ros.actions import LifecycleNode


def matches_node_name(node_name: str) -> Callable[[LifecycleNode], bool]:
    """Return a function that says whether a node has this name; use launch_ros.events."""
    warnings.warn(
        "'matches_node_name' has been moved into the 'launch_ros.events' module and will be "
        "removed from the 'lifecycle' module in the future")
    return matchers.matches_node_name(node_name)
