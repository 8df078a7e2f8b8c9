"""Event: a process is to receive a signal."""

from __future__ import annotations

import signal as signals

from launch.events.process.process_targeted_event import ProcessTargetedEvent
from launch.utilities import ensure_argument_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Union

    from launch.actions import ExecuteLocal


class SignalProcess(ProcessTargetedEvent):
    """A process is to receive a signal."""

    name = 'launch.events.process.SignalProcess'

    def __init__(
        self,
        *,
        signal_number: Union[str, signals.Signals],
        process_matcher: Callable[[ExecuteLocal], bool],
    ) -> None:
        super().__init__(process_matcher=process_matcher)
        ensure_argument_type(
            signal_number, (str, signals.Signals), 'signal_number', 'SignalProcess')
        self.__signal = signal_number

    @property
    def signal(self) -> Union[str, signals.Signals]:
        """The signal, or its name."""
        return self.__signal

    @property
    def signal_name(self) -> str:
        """The name of the signal."""
        return self.__signal if isinstance(self.__signal, str) else self.__signal.name
