"""Guard conditions: callbacks that another thread triggers."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from rclpy.callback_groups import CallbackGroup
    from rclpy.context import Context
else:
    __getattr__ = getter_of(__name__)


class GuardCondition:
    """A callback that runs in an executor after :meth:`trigger`."""

    def __init__(
        self, callback: Optional[Callable[[], Any]], callback_group: Optional[CallbackGroup],
        context: Optional[Context] = None,
    ) -> None:
        """Create one; use :meth:`rclpy.node.Node.create_guard_condition`."""
        from rclpy.utilities import get_default_context
        self._context = get_default_context() if context is None else context
        if self._context.handle is None:
            from rclpy.exceptions import NotInitializedException
            raise NotInitializedException('a guard condition needs an initialized context')
        self.__gc = _native.GuardCondition(self._context.handle)
        self.callback = callback
        self.callback_group = callback_group
        self._executor_event = False

    def trigger(self) -> None:
        """Let the callback run once. Several triggers before it runs count as one."""
        self.__gc.trigger_guard_condition()

    @property
    def handle(self) -> Any:
        """The handle of the implementation."""
        return self.__gc

    def destroy(self) -> None:
        """Destroy the guard condition; use ``Node.destroy_guard_condition``."""
        self.__gc.destroy_when_not_in_use()

    def _executor_take(self, executor: Any) -> Any:
        # The poller took the trigger.
        return None if self.__gc.is_destroyed else ()

    def _executor_call(self) -> Any:
        return self.callback() if self.callback is not None else None
