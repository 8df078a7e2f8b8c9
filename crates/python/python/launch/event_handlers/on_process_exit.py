"""Handler: a process has ended."""

from __future__ import annotations

from launch.event_handlers.on_action_event_base import OnActionEventBase
from launch.events.process import ProcessExited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OnProcessExit(OnActionEventBase):
    """Does something when a process has ended."""

    def __init__(self, *, target_action: Any = None, on_exit: Any, **kwargs: Any) -> None:
        from launch.actions import ExecuteLocal
        super().__init__(
            action_matcher=target_action, on_event=on_exit, target_event_cls=ProcessExited,
            target_action_cls=ExecuteLocal, **kwargs)
