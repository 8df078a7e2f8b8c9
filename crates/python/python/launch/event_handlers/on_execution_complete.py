"""Handler: an action is complete."""

from __future__ import annotations

from launch.event_handlers.on_action_event_base import OnActionEventBase
from launch.events.execution_complete import ExecutionComplete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OnExecutionComplete(OnActionEventBase):
    """Does something when an action is complete."""

    def __init__(
        self, *, target_action: Any = None, on_completion: Any, **kwargs: Any,
    ) -> None:
        from launch.action import Action
        super().__init__(
            action_matcher=target_action, on_event=on_completion,
            target_event_cls=ExecutionComplete, target_action_cls=Action, **kwargs)
