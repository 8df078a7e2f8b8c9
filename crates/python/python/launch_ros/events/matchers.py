"""Matchers of nodes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch_ros.actions import Node


def matches_node_name(node_name: str) -> Callable[[Node], bool]:
    """Return a function that says whether a node has this full name."""
    if not node_name.startswith('/'):
        node_name = f'/{node_name}'
    return lambda action: action.node_name == node_name
