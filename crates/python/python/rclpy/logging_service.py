"""The services through which others read and set the levels of loggers."""

from __future__ import annotations

import weakref

from rclpy._imported_names import getter_of
import rclpy.logging
from rcl_interfaces.msg import LoggerLevel, SetLoggerLevelsResult
from rcl_interfaces.srv import GetLoggerLevels, SetLoggerLevels
from rclpy.qos import qos_profile_services_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)


class LoggingService:
    """Serves the levels of the loggers of a node's process."""

    def __init__(self, node: Node) -> None:
        """Create the services in the node."""
        self._node_weak_ref = weakref.ref(node)
        name = node.get_name()
        node.create_service(
            GetLoggerLevels, f'{name}/get_logger_levels', self._get_logger_levels,
            qos_profile=qos_profile_services_default)
        node.create_service(
            SetLoggerLevels, f'{name}/set_logger_levels', self._set_logger_levels,
            qos_profile=qos_profile_services_default)

    def _get_logger_levels(self, request: Any, response: Any) -> Any:
        levels = []
        for name in request.names:
            try:
                level = int(rclpy.logging.get_logger_level(name))
            except (RuntimeError, ValueError):
                level = 0
            levels.append(LoggerLevel(name=name, level=level))
        response.levels = levels
        return response

    def _set_logger_levels(self, request: Any, response: Any) -> Any:
        results = []
        for level in request.levels:
            result = SetLoggerLevelsResult(successful=False)
            try:
                rclpy.logging.set_logger_level(level.name, level.level, detailed_error=True)
                result.successful = True
            except (RuntimeError, ValueError):
                # Clients compare this text.
                result.reason = 'Failed reason: Invalid logger level.'
            results.append(result)
        response.results = results
        return response
