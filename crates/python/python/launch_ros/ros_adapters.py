"""ROS adapter: the node of a launch, which actions use for services, topics and timers."""

from __future__ import annotations

import os
import threading

import launch
from launch.event_handlers import OnShutdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node


class ROSAdapter:
    """A context, a node ``launch_ros_PID`` and an executor in a thread of its own."""

    def __init__(self, *, argv: Optional[List[str]] = None, autostart: bool = True) -> None:
        self.__argv = [] if argv is None else argv
        self.__context: Optional[Context] = None
        self.__node: Optional[Node] = None
        self.__executor: Optional[SingleThreadedExecutor] = None
        self.__thread: Optional[threading.Thread] = None
        self.__is_running = False
        if autostart:
            self.start()

    def start(self) -> None:
        """
        Start it.

        :raises RuntimeError: if it runs.
        """
        if self.__is_running:
            raise RuntimeError('Cannot start a ROS adapter that is already running')
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        self.__context = rclpy.Context()
        rclpy.init(args=self.__argv, context=self.__context)
        self.__node = rclpy.create_node(
            f'launch_ros_{os.getpid()}', context=self.__context)
        self.__executor = SingleThreadedExecutor(context=self.__context)
        self.__executor.add_node(self.__node)
        self.__is_running = True
        self.__thread = threading.Thread(target=self.__spin, daemon=True)
        self.__thread.start()

    def __spin(self) -> None:
        from rclpy.executors import ExternalShutdownException
        try:
            while self.__is_running:
                self.__executor.spin_once(timeout_sec=1.0)
        except (KeyboardInterrupt, ExternalShutdownException):
            pass

    def shutdown(self) -> None:
        """
        Stop it.

        :raises RuntimeError: if it does not run.
        """
        if not self.__is_running:
            raise RuntimeError('Cannot shutdown a ROS adapter that is not running')
        import rclpy
        self.__is_running = False
        self.__executor.wake()
        self.__thread.join()
        self.__executor.remove_node(self.__node)
        self.__node.destroy_node()
        rclpy.shutdown(context=self.__context)

    @property
    def is_running(self) -> bool:
        """Whether it has been started, and not been stopped."""
        return self.__is_running

    @property
    def argv(self) -> List[str]:
        """The arguments of the context."""
        return self.__argv

    @property
    def ros_context(self) -> Optional[Context]:
        """The context."""
        return self.__context

    @property
    def ros_node(self) -> Optional[Node]:
        """The node."""
        return self.__node

    @property
    def ros_executor(self) -> Optional[SingleThreadedExecutor]:
        """The executor."""
        return self.__executor


def get_ros_adapter(context: launch.LaunchContext) -> ROSAdapter:
    """Return the adapter of a launch; it starts when it is first needed."""
    adapter: Any = context.get_locals_as_dict().get('ros_adapter')
    if adapter is None:
        adapter = ROSAdapter()
        context.extend_globals({'ros_adapter': adapter})
        context.register_event_handler(
            OnShutdown(on_shutdown=lambda event, context: _shutdown(adapter, context)))
    return adapter


def _shutdown(adapter: ROSAdapter, context: launch.LaunchContext) -> None:
    # An event of a launch that ends already finds it stopped.
    if adapter.is_running:
        adapter.shutdown()
    # A later run of the service starts another one.
    context.extend_globals({'ros_adapter': None})


def get_ros_node(context: launch.LaunchContext) -> Node:
    """Return the node of a launch; it starts when it is first needed."""
    return get_ros_adapter(context).ros_node
