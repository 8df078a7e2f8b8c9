"""Names of the nodes that a launch has started."""

from __future__ import annotations

import collections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict

    from launch.launch_context import LaunchContext

_KEY = 'unique_ros_node_names'


def _counts(context: LaunchContext) -> Dict[str, int]:
    counts = context.get_locals_as_dict().get(_KEY)
    if counts is None:
        counts = collections.defaultdict(int)
        context.extend_globals({_KEY: counts})
    return counts


def add_node_name(context: LaunchContext, node_name: str) -> None:
    """Count a node."""
    _counts(context)[node_name] += 1


def get_node_name_count(context: LaunchContext, node_name: str) -> int:
    """Return how many nodes have this name."""
    return _counts(context)[node_name]
