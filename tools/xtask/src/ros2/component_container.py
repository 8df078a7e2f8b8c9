#!/usr/bin/env python3
"""Stands in for the component container of C++ in the tests of launch_ros: it loads nothing.

It answers requests to load a node as if the node ran.
"""

from composition_interfaces.srv import LoadNode
import rclpy
from rclpy.executors import ExternalShutdownException


def main():
    """Answer until the launch ends."""
    rclpy.init()
    node = rclpy.create_node('component_container')
    loaded = []

    def load(request, response):
        name = request.node_name or request.plugin_name.rpartition('::')[2].lower()
        namespace = '/' + request.node_namespace.strip('/')
        loaded.append(name)
        response.success = True
        response.full_node_name = f"{namespace.rstrip('/')}/{name}"
        response.unique_id = len(loaded)
        return response

    node.create_service(LoadNode, '~/_container/load_node', load)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
