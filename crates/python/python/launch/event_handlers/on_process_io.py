"""Handler: a process has read or written."""

from __future__ import annotations

from launch.event_handlers.on_action_event_base import OnActionEventBase
from launch.events.process import ProcessIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from launch.launch_context import LaunchContext
    from launch.some_entities_type import SomeEntitiesType

    Function = Optional[Callable[[ProcessIO], Optional[SomeEntitiesType]]]


class OnProcessIO(OnActionEventBase):
    """Calls functions when a process has read or written."""

    def __init__(
        self,
        *,
        target_action: Any = None,
        on_stdin: Function = None,
        on_stdout: Function = None,
        on_stderr: Function = None,
        **kwargs: Any,
    ) -> None:
        from launch.actions import ExecuteLocal

        def on_event(event: ProcessIO, _: LaunchContext) -> Optional[SomeEntitiesType]:
            function = on_stdin
            if event.from_stdout:
                function = on_stdout
            elif event.from_stderr:
                function = on_stderr
            return None if function is None else function(event)

        super().__init__(
            action_matcher=target_action, on_event=on_event, target_event_cls=ProcessIO,
            target_action_cls=ExecuteLocal, **kwargs)
