"""Expansion of topic and service names."""

from pteros import _native


def expand_topic_name(topic_name: str, node_name: str, node_namespace: str) -> str:
    """
    Return the full name of a topic or service for a node.

    It replaces ``~`` and the substitutions ``{node}``, ``{ns}`` and ``{namespace}``, and
    prepends the namespace to relative names.

    :raises ValueError: if a name is invalid, or a substitution does not exist.
    """
    try:
        return _native.expand_topic_name(topic_name, node_name, node_namespace)
    except _native.InvalidNameError as error:
        # rclpy promises no attributes here.
        raise ValueError(error.message) from error
