"""The actions of the graph."""

from __future__ import annotations

from rclpy._imported_names import getter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)


def get_action_client_names_and_types_by_node(
    node: Node, remote_node_name: str, remote_node_namespace: str,
) -> List[Tuple[str, List[str]]]:
    """
    Return the actions that a node has clients of, with their types.

    :raises NodeNameNonExistentError: if there is no such node.
    """
    with node.handle:
        return node.handle.names_and_types_by_node(
            'action_client', remote_node_name, remote_node_namespace)


def get_action_server_names_and_types_by_node(
    node: Node, remote_node_name: str, remote_node_namespace: str,
) -> List[Tuple[str, List[str]]]:
    """
    Return the actions that a node serves, with their types.

    :raises NodeNameNonExistentError: if there is no such node.
    """
    with node.handle:
        return node.handle.names_and_types_by_node(
            'action_server', remote_node_name, remote_node_namespace)


def get_action_names_and_types(node: Node) -> List[Tuple[str, List[str]]]:
    """Return all actions with their types."""
    with node.handle:
        return node.handle.get_action_names_and_types()
