"""Base of the events of a process."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from launch.actions import ExecuteProcess


class RunningProcessEvent(Event):
    """An event of a process."""

    name = 'launch.events.process.RunningProcessEvent'

    def __init__(
        self,
        *,
        action: ExecuteProcess,
        name: str,
        cmd: List[str],
        cwd: Optional[str],
        env: Optional[Dict[str, str]],
        pid: int,
    ) -> None:
        super().__init__()
        self.__action = action
        self.__name = name
        self.__cmd = cmd
        self.__cwd = cwd
        self.__env = env
        self.__pid = pid

    @property
    def action(self) -> ExecuteProcess:
        """The action that started it."""
        return self.__action

    @property
    def execute_process_action(self) -> ExecuteProcess:
        """The action that started it; use ``action``."""
        return self.__action

    @property
    def process_name(self) -> str:
        """The name of the process in this launch."""
        return self.__name

    @property
    def cmd(self) -> List[str]:
        """The command."""
        return self.__cmd

    @property
    def cwd(self) -> Optional[str]:
        """The working folder; ``None`` is that of the launch."""
        return self.__cwd

    @property
    def env(self) -> Optional[Dict[str, str]]:
        """The environment."""
        return self.__env

    @property
    def pid(self) -> int:
        """The process id."""
        return self.__pid
