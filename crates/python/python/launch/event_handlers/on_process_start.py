"""Handler: a process has started."""

from __future__ import annotations

from launch.event_handlers.on_action_event_base import OnActionEventBase
from launch.events.process import ProcessStarted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OnProcessStart(OnActionEventBase):
    """Does something when a process has started."""

    def __init__(self, *, target_action: Any = None, on_start: Any, **kwargs: Any) -> None:
        from launch.actions import ExecuteLocal
        super().__init__(
            action_matcher=target_action, on_event=on_start, target_event_cls=ProcessStarted,
            target_action_cls=ExecuteLocal, **kwargs)
