"""Loggers, and the filters that a call site may give: once, skip first, throttle."""

from __future__ import annotations

import sys

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl.logging_severity import LoggingSeverity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple, Union

    from rclpy.clock import Clock

    SeverityArgument = Union[LoggingSeverity, int]
else:
    __getattr__ = getter_of(__name__)

_THIS_FILE = __file__
_MAX_CALL_SITES = 100_000
"""Call sites with filters that one logger remembers. Beyond it, the oldest is forgotten."""

_levels_set: set = set()
"""The loggers whose level was set, for :func:`rclpy.logging.clear_config`."""


class LoggingFilter:
    """A condition on the messages of one call site."""

    params: Dict[str, Any] = {}
    """The keyword arguments with their defaults; ``None`` marks a required one."""

    def __init__(self, context: Dict[str, Any]) -> None:
        raise NotImplementedError()

    def should_log(self) -> bool:
        """Return whether this call's message is logged, and count the call."""
        raise NotImplementedError()


class Throttle(LoggingFilter):
    """Log a message only if the last one is long enough ago."""

    params = {'throttle_duration_sec': None, 'throttle_time_source_type': 'SYSTEM_TIME'}

    def __init__(self, context: Dict[str, Any]) -> None:
        from rclpy.clock import Clock
        source = context['throttle_time_source_type']
        if not isinstance(source, Clock):
            from rclpy.clock_type import ClockType
            kinds = {
                'SYSTEM_TIME': ClockType.SYSTEM_TIME, 'RCUTILS_SYSTEM_TIME': ClockType.SYSTEM_TIME,
                'STEADY_TIME': ClockType.STEADY_TIME, 'RCUTILS_STEADY_TIME': ClockType.STEADY_TIME,
            }
            try:
                source = Clock(clock_type=kinds[source])
            except (KeyError, TypeError):
                raise ValueError(
                    f'throttle_time_source_type {source!r} is no Clock; use one, '
                    "'SYSTEM_TIME' or 'STEADY_TIME'") from None
        self._clock = source
        self._period_ns = int(context['throttle_duration_sec'] * 1e9)
        self._last_ns = 0

    def should_log(self) -> bool:
        """Return whether the period has passed since the last message."""
        now_ns = self._clock.now().nanoseconds
        if now_ns < self._last_ns + self._period_ns:
            return False
        self._last_ns = now_ns
        return True


class SkipFirst(LoggingFilter):
    """Do not log the first message."""

    params = {'skip_first': None}

    def __init__(self, context: Dict[str, Any]) -> None:
        self._first = True

    def should_log(self) -> bool:
        """Return whether an earlier call was skipped."""
        if self._first:
            self._first = False
            return False
        return True


class Once(LoggingFilter):
    """Log the first message only."""

    params = {'once': None}

    def __init__(self, context: Dict[str, Any]) -> None:
        self._logged = False

    def should_log(self) -> bool:
        """Return whether nothing was logged yet."""
        if self._logged:
            return False
        self._logged = True
        return True


supported_filters = {'throttle': Throttle, 'skip_first': SkipFirst, 'once': Once}
"""The filters in the order in which they are asked."""

_FILTER_PARAMETERS = frozenset(
    name for filter_class in supported_filters.values() for name in filter_class.params)


def _requested_filters(kwargs: Dict[str, Any]) -> List[str]:
    return [
        name for name, filter_class in supported_filters.items()
        if any(kwargs.get(key) for key in filter_class.params)]


class _CallSite:
    """The arguments of a call site's first call, and the state of its filters."""

    __slots__ = ('name', 'severity', 'requested', 'arguments', 'filters')

    def __init__(self, name: str, severity: int, kwargs: Dict[str, Any]) -> None:
        self.name = name
        self.severity = severity
        self.requested = _requested_filters(kwargs)
        self.arguments: Dict[str, Any] = {}
        self.filters = []
        for filter_name in self.requested:
            filter_class = supported_filters[filter_name]
            required = [key for key, default in filter_class.params.items() if default is None]
            missing = [key for key in required if not kwargs.get(key)]
            if missing:
                raise TypeError(
                    f'required parameter "{missing[0]}" of the filter "{filter_name}" '
                    'not specified')
            context = {
                key: kwargs[key] if kwargs.get(key) else default
                for key, default in filter_class.params.items()}
            self.arguments.update(context)
            self.filters.append(filter_class(context))


class RcutilsLogger:
    """
    A logger with a name.

    The methods :meth:`debug` to :meth:`fatal` take the message and these keywords:

    * ``once=True``: the call site logs its first message only.
    * ``skip_first=True``: the call site's first message is not logged.
    * ``throttle_duration_sec``, ``throttle_time_source_type``: the call site logs at most one
      message in that time of that clock.
    * ``name``: log under another logger's name.

    They return whether the message was logged. A call site must not change its severity or
    its filters between calls.
    """

    def __init__(self, name: str = '') -> None:
        self.name = name
        self.contexts: Dict[Tuple, _CallSite] = {}
        self.children: Dict[str, Any] = {}

    def get_child(self, name: str) -> RcutilsLogger:
        """
        Return the logger with this name below this one.

        :raises ValueError: if the name is empty.
        """
        if not name:
            raise ValueError('Child logger name must not be empty.')
        full_name = f'{self.name}.{name}' if self.name else name
        child = self.children.get(full_name)
        if child is None:
            child = self.children[full_name] = RcutilsLogger(full_name)
        return child

    def set_level(self, level: SeverityArgument) -> None:
        """Set the lowest severity that is logged."""
        level = LoggingSeverity(level)
        _levels_set.add(self.name)
        _native.set_logger_level(self.name, int(level))

    def get_effective_level(self) -> LoggingSeverity:
        """Return the level of this logger, or of the nearest parent that has one."""
        return LoggingSeverity(_native.get_logger_effective_level(self.name))

    def is_enabled_for(self, severity: SeverityArgument) -> bool:
        """Return whether messages of a severity are logged."""
        return _native.is_logger_enabled_for(self.name, int(LoggingSeverity(severity)))

    def log(self, message: str, severity: SeverityArgument, **kwargs: Any) -> bool:
        """
        Log a message; see the class for the keywords.

        :raises TypeError: if a keyword does not exist, or a filter's required one is missing.
        :raises ValueError: if the call site used other keywords or another severity before.
        :returns: whether the message was logged.
        """
        if type(severity) is not LoggingSeverity:
            severity = LoggingSeverity(severity)
        name = kwargs.pop('name', None) or self.name
        # A call site below the level is not remembered, so its severity may change.
        if not _native.is_logger_enabled_for(name, int(severity)):
            return False
        frame = sys._getframe(1)
        while frame.f_code.co_filename == _THIS_FILE and frame.f_back is not None:
            frame = frame.f_back
        code = frame.f_code
        line = frame.f_lineno
        if kwargs and not _FILTER_PARAMETERS.issuperset(kwargs):
            unknown = next(key for key in kwargs if key not in _FILTER_PARAMETERS)
            raise TypeError(
                f'parameter "{unknown}" is not one of the recognized logging options '
                f'{sorted(_FILTER_PARAMETERS)}')
        key = (code, line, frame.f_lasti)
        site = self.contexts.get(key)
        if site is None:
            if len(self.contexts) >= _MAX_CALL_SITES:
                del self.contexts[next(iter(self.contexts))]
            site = self.contexts[key] = _CallSite(name, severity, kwargs)
        else:
            if site.severity != severity:
                raise ValueError('Logger severity cannot be changed between calls.')
            if site.name != name:
                raise ValueError('Logger name cannot be changed between calls.')
            if (kwargs or site.filters) and _requested_filters(kwargs) != site.requested:
                raise ValueError('Requested logging filters cannot be changed between calls.')
            for keyword, value in kwargs.items():
                if site.arguments.get(keyword, value) != value:
                    raise ValueError('Logger parameters cannot be changed between calls.')
        for log_filter in site.filters:
            if not log_filter.should_log():
                return False
        _native.log(name, int(site.severity), str(message), code.co_name, code.co_filename, line)
        return True

    def debug(self, message: str, **kwargs: Any) -> bool:
        """Log a message for the engineer of the program."""
        return self.log(message, LoggingSeverity.DEBUG, **kwargs)

    def info(self, message: str, **kwargs: Any) -> bool:
        """Log a message for the operator."""
        return self.log(message, LoggingSeverity.INFO, **kwargs)

    def warning(self, message: str, **kwargs: Any) -> bool:
        """Log a warning."""
        return self.log(message, LoggingSeverity.WARN, **kwargs)

    def warn(self, message: str, **kwargs: Any) -> bool:
        """Log a warning."""
        return self.log(message, LoggingSeverity.WARN, **kwargs)

    def error(self, message: str, **kwargs: Any) -> bool:
        """Log an error."""
        return self.log(message, LoggingSeverity.ERROR, **kwargs)

    def fatal(self, message: str, **kwargs: Any) -> bool:
        """Log an error after which the program cannot go on."""
        return self.log(message, LoggingSeverity.FATAL, **kwargs)


