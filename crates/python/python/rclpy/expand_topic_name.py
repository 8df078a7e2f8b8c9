"""Expansion of topic and service names."""

from pteros import _native
from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_namespace import validate_namespace
from rclpy.validate_node_name import validate_node_name


def expand_topic_name(topic_name: str, node_name: str, node_namespace: str) -> str:
    """
    Return the full name of a topic or service for a node.

    It replaces ``~`` and the substitutions ``{node}``, ``{ns}`` and ``{namespace}``, and
    prepends the namespace to relative names.

    :raises ValueError: if the topic name is invalid, or a substitution does not exist.
    :raises InvalidNodeNameException: if the node name is invalid.
    :raises InvalidNamespaceException: if the namespace is invalid.
    """
    validate_node_name(node_name)
    validate_namespace(node_namespace)
    try:
        return _native.expand_topic_name(topic_name, node_name, node_namespace)
    except _native.InvalidNameError as error:
        raise InvalidTopicNameException(error.name, error.message, error.index) from error
