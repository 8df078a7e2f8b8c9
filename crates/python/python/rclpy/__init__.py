"""
ROS 2's client library for Python, on Pteros.

Programs that were written for rclpy run unchanged, without a ROS 2 installation::

    import rclpy
    from rclpy.node import Node
    from std_msgs.msg import String

    rclpy.init()
    node = Node('talker')
    publisher = node.create_publisher(String, 'chatter', 10)
    node.create_timer(1.0, lambda: publisher.publish(String(data='hello')))
    rclpy.spin(node)

A program initializes a context with :func:`init`, creates nodes, and runs their callbacks with
:func:`spin` or an executor of :mod:`rclpy.executors`.
"""

from __future__ import annotations

from rclpy.context import Context
from rclpy.signals import (
    SignalHandlerOptions, install_signal_handlers, uninstall_signal_handlers,
)
from rclpy.task import Future
from rclpy.utilities import (
    get_default_context, get_rmw_implementation_identifier, ok, shutdown as _shutdown,
    try_shutdown as _try_shutdown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from rclpy.executors import Executor
    from rclpy.node import Node
    from rclpy.parameter import Parameter

__all__ = [
    'Context', 'Future', 'SignalHandlerOptions', 'create_node', 'get_default_context',
    'get_global_executor', 'get_rmw_implementation_identifier', 'init',
    'install_signal_handlers', 'ok', 'shutdown', 'spin', 'spin_once',
    'spin_until_future_complete', 'try_shutdown', 'uninstall_signal_handlers',
]


class InitContextManager:
    """What :func:`init` returns: it shuts the context down at the end of a ``with`` block."""

    def __init__(self, context: Context, has_signal_handlers: bool) -> None:
        self.context = context
        self.installed_signal_handlers = has_signal_handlers

    def __enter__(self) -> InitContextManager:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        context = None if self.context is get_default_context() else self.context
        try_shutdown(context=context, uninstall_handlers=self.installed_signal_handlers)


def init(
    *, args: Optional[List[str]] = None, context: Optional[Context] = None,
    domain_id: Optional[int] = None,
    signal_handler_options: Optional[SignalHandlerOptions] = None,
) -> InitContextManager:
    """
    Initialize a context.

    :param args: The command line; ``None`` stands for ``sys.argv``.
    :param context: The context; ``None`` stands for the default one.
    :param domain_id: The domain; ``None`` stands for ROS_DOMAIN_ID, else 0.
    :param signal_handler_options: The signals that shut all contexts down. ``None`` stands for
        SIGINT and SIGTERM with the default context, and for none with another one.
    :returns: a context manager that shuts the context down.
    :raises RuntimeError: if the context is initialized already.
    """
    default = get_default_context()
    context = default if context is None else context
    if signal_handler_options is None:
        signal_handler_options = (
            SignalHandlerOptions.ALL if context is default else SignalHandlerOptions.NO)
    context.init(args, domain_id=domain_id)
    if signal_handler_options is not SignalHandlerOptions.NO:
        install_signal_handlers(signal_handler_options)
    return InitContextManager(context, signal_handler_options is not SignalHandlerOptions.NO)


def __getattr__(name: str) -> Any:
    # Programs use rclpy.executors and others after `import rclpy` alone. Importing them at
    # their first use keeps that import fast.
    if name == 'Parameter':
        from rclpy.parameter import Parameter
        return Parameter
    if name.startswith('_') and name != '_rclpy_pybind11':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    import importlib
    try:
        return importlib.import_module(f'{__name__}.{name}')
    except ModuleNotFoundError as error:
        if error.name != f'{__name__}.{name}':
            raise
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}') from None


# Coroutines that are suspended in one call of spin go on in the next one: all use this executor.
_global_executor: Optional[Executor] = None


def get_global_executor() -> Executor:
    """Return the executor of :func:`spin`, until the default context is shut down."""
    global _global_executor
    if _global_executor is None:
        from rclpy.executors import SingleThreadedExecutor
        _global_executor = SingleThreadedExecutor()
        get_default_context().on_shutdown(_reset_global_executor)
    return _global_executor


def _reset_global_executor() -> None:
    global _global_executor
    executor, _global_executor = _global_executor, None
    if executor is not None:
        executor.shutdown()


def shutdown(
    *, context: Optional[Context] = None, uninstall_handlers: Optional[bool] = None,
) -> None:
    """
    Shut a context down. All spinning of its nodes ends.

    :param context: The context; ``None`` stands for the default one.
    :param uninstall_handlers: Put back the signal handlers that were there before. ``None``
        stands for "if it is the default context".
    :raises RuntimeError: if it is shut down already; see :func:`try_shutdown`.
    """
    is_default = context is None or context is get_default_context()
    try:
        _shutdown(context=context)
    finally:
        # Also if a callback of the shutdown fails.
        if uninstall_handlers or (uninstall_handlers is None and is_default):
            uninstall_signal_handlers()


def try_shutdown(
    *, context: Optional[Context] = None, uninstall_handlers: Optional[bool] = None,
) -> None:
    """
    Shut a context down, unless that has happened.

    :param context: The context; ``None`` stands for the default one.
    :param uninstall_handlers: Put back the signal handlers that were there before. ``None``
        stands for "if it is the default context".
    """
    is_default = context is None or context is get_default_context()
    try:
        _try_shutdown(context=context)
    finally:
        if uninstall_handlers or (uninstall_handlers is None and is_default):
            uninstall_signal_handlers()


def create_node(
    node_name: str, *, context: Optional[Context] = None, cli_args: Optional[List[str]] = None,
    namespace: Optional[str] = None, use_global_arguments: bool = True,
    enable_rosout: bool = True, start_parameter_services: bool = True,
    parameter_overrides: Optional[List[Parameter]] = None,
    allow_undeclared_parameters: bool = False,
    automatically_declare_parameters_from_overrides: bool = False,
    enable_logger_service: bool = False,
) -> Node:
    """Create a node; the parameters are those of :class:`rclpy.node.Node`."""
    from rclpy.node import Node
    return Node(
        node_name, context=context, cli_args=cli_args, namespace=namespace,
        use_global_arguments=use_global_arguments, enable_rosout=enable_rosout,
        start_parameter_services=start_parameter_services,
        parameter_overrides=parameter_overrides,
        allow_undeclared_parameters=allow_undeclared_parameters,
        automatically_declare_parameters_from_overrides=(
            automatically_declare_parameters_from_overrides),
        enable_logger_service=enable_logger_service)


def spin_once(
    node: Node, *, executor: Optional[Executor] = None, timeout_sec: Optional[float] = None,
) -> None:
    """
    Wait for one callback and run it.

    :param node: A node that is in the executor during the call.
    :param executor: The executor; ``None`` stands for the global one.
    :param timeout_sec: Longest wait; ``None`` and negative numbers stand for "for ever".
    """
    executor = get_global_executor() if executor is None else executor
    try:
        executor.add_node(node)
        executor.spin_once(timeout_sec=timeout_sec)
    finally:
        executor.remove_node(node)


def spin(node: Node, executor: Optional[Executor] = None) -> None:
    """
    Run callbacks until the context is shut down.

    :param node: A node that is in the executor during the call.
    :param executor: The executor; ``None`` stands for the global one.
    :raises ExternalShutdownException: if the context is shut down while it waits.
    """
    executor = get_global_executor() if executor is None else executor
    try:
        executor.add_node(node)
        executor.spin()
    finally:
        executor.remove_node(node)


def spin_until_future_complete(
    node: Node, future: Any, executor: Optional[Executor] = None,
    timeout_sec: Optional[float] = None,
) -> None:
    """
    Run callbacks until a future is done.

    :param node: A node that is in the executor during the call.
    :param future: The future.
    :param executor: The executor; ``None`` stands for the global one.
    :param timeout_sec: Longest time; ``None`` and negative numbers stand for "for ever". It is
        no error when it has passed.
    """
    executor = get_global_executor() if executor is None else executor
    added = False
    try:
        added = executor.add_node(node)
        executor.spin_until_future_complete(future, timeout_sec)
    finally:
        if added:
            executor.remove_node(node)
