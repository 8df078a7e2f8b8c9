"""Loggers and their levels."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl import rcutils_logger
from rclpy.impl.logging_severity import LoggingSeverity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Union
else:
    __getattr__ = getter_of(__name__)

_root_logger = rcutils_logger.RcutilsLogger()


def get_logger(name: str) -> rcutils_logger.RcutilsLogger:
    """
    Return the logger with a name; dots in it make parents.

    :raises ValueError: if the name is empty.
    """
    if not name:
        raise ValueError('Logger name must not be empty.')
    return _root_logger.get_child(name)


def initialize() -> None:
    """Do nothing: logging works from the first message on."""


def shutdown() -> None:
    """Do nothing: every line is written when it is logged."""


def clear_config() -> None:
    """Forget all levels that were set."""
    for name in list(rcutils_logger._levels_set):
        _native.set_logger_level(name, 0)
    rcutils_logger._levels_set.clear()


def set_logger_level(
    name: str, level: Union[int, LoggingSeverity], detailed_error: bool = False,
) -> None:
    """
    Set the lowest severity that a logger logs.

    :param name: The logger; it need not exist yet.
    :param detailed_error: Kept for compatibility; errors name the logger and the level anyway.
    """
    severity = LoggingSeverity(level)
    rcutils_logger._levels_set.add(name)
    _native.set_logger_level(name, int(severity))


def get_logger_effective_level(name: str) -> LoggingSeverity:
    """Return the level of a logger, or of the nearest parent that has one."""
    return LoggingSeverity(_native.get_logger_effective_level(name))


def get_logger_level(name: str) -> LoggingSeverity:
    """Return the level of a logger itself."""
    return LoggingSeverity(_native.get_logger_level(name))


def get_logging_severity_from_string(log_severity: str) -> LoggingSeverity:
    """
    Return the severity with a name, in upper or lower case.

    :raises RuntimeError: if there is none.
    """
    try:
        return LoggingSeverity[log_severity.upper()]
    except KeyError:
        raise RuntimeError(
            f'no severity is named {log_severity!r}; use one of '
            + ', '.join(severity.name for severity in LoggingSeverity)) from None


def get_logging_directory() -> Path:
    """Return the folder of the log files (ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log)."""
    from pathlib import Path
    return Path(_native.get_logging_directory())
