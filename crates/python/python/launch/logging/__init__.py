"""
Logging of launches: loggers, the log folder of a launch, and outputs of processes.

Loggers of this package write to the screen and to ``launch.log`` in the log folder. The log
folder is made when it is first needed, in ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log.
"""

from __future__ import annotations

import codecs
import datetime
import locale
import logging
import os
import socket
import sys
import warnings

from launch.logging import handlers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Union

__all__ = ['get_logger', 'get_output_loggers', 'handlers', 'launch_config', 'reset']

SCREEN_FORMAT_VARIABLE = 'OVERRIDE_LAUNCH_SCREEN_FORMAT'
LOG_FORMAT_VARIABLE = 'OVERRIDE_LAUNCH_LOG_FORMAT'

_FORMAT = '[{levelname}] [{name}]: {msg}'
_FORMAT_WITH_TIME = '{created:.7f} ' + _FORMAT


def get_logging_directory() -> str:
    """Return the folder of log folders: ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log."""
    from pteros import _native
    return os.path.normpath(_native.get_logging_directory())


def _make_unique_log_dir(*, base_path: str) -> str:
    while True:
        now = datetime.datetime.now().strftime('%Y-%m-%d-%H-%M-%S-%f')
        path = os.path.join(base_path, f'{now}-{socket.gethostname()}-{os.getpid()}')
        try:
            os.makedirs(path)
            return path
        except FileExistsError:
            continue


def _renew_latest_log_dir(*, log_dir: str) -> bool:
    """Point the link ``latest`` to a folder; ``False`` if something else has the name."""
    latest = os.path.join(os.path.dirname(log_dir), 'latest')
    if os.path.lexists(latest):
        if not os.path.islink(latest):
            return False
        os.unlink(latest)
    os.symlink(log_dir, latest, target_is_directory=True)
    return True


def _format_override(variable: str) -> Optional[str]:
    value = os.environ.get(variable)
    return value.encode('latin1').decode('unicode_escape') if value else None


class LaunchConfig:
    """The settings of launch logging."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Go back to the defaults."""
        self._log_dir: Optional[str] = None
        self._log_handler_factory: Any = None
        self.file_handlers: Dict[str, Any] = {}
        self.screen_handler: Any = None
        self.screen_formatter: Optional[logging.Formatter] = None
        self.file_formatter: Optional[logging.Formatter] = None
        self.level = logging.INFO
        self.set_screen_format('default')
        self.set_log_format('default')

    @property
    def level(self) -> int:
        """The lowest level that loggers write."""
        return logging.root.getEffectiveLevel()

    @level.setter
    def level(self, new_level: int) -> None:
        logging.root.setLevel(new_level)

    @property
    def log_dir(self) -> str:
        """The log folder of this launch; it is made when it is first read."""
        if self._log_dir is None:
            self._log_dir = _make_unique_log_dir(base_path=get_logging_directory())
            try:
                if not _renew_latest_log_dir(log_dir=self._log_dir):
                    warnings.warn('Cannot create a symlink to latest log directory')
            except OSError as error:
                # Two launches may do it at the same time.
                warnings.warn(f'Cannot create a symlink to latest log directory: {error}\n')
        return self._log_dir

    @log_dir.setter
    def log_dir(self, new_log_dir: Optional[str]) -> None:
        if new_log_dir is not None:
            if self.file_handlers:
                warnings.warn(
                    'Loggers have been already configured to output to log files below '
                    f'{self._log_dir}. Proceed at your own risk.')
            if not os.path.isdir(new_log_dir):
                raise ValueError(f'{new_log_dir} is not a directory')
        self._log_dir = new_log_dir

    @property
    def log_handler_factory(self) -> Callable[..., Any]:
        """Makes the handler of a log file from its path and encoding."""
        if self._log_handler_factory is None:
            self._log_handler_factory = handlers.WatchedFileHandler
        return self._log_handler_factory

    @log_handler_factory.setter
    def log_handler_factory(self, new_log_handler_factory: Callable[..., Any]) -> None:
        self._log_handler_factory = new_log_handler_factory

    def set_screen_format(
        self, screen_format: Optional[str], *, screen_style: Optional[str] = None,
    ) -> None:
        """
        Set the format of lines on the screen.

        :param screen_format: 'default', 'default_with_timestamp' or a format of
            :class:`logging.Formatter`; ``None`` for none.
        :raises ValueError: if a style is given with a named format.
        """
        override = _format_override(SCREEN_FORMAT_VARIABLE)
        if override is not None:
            screen_format, screen_style = override, '{'
        self.screen_formatter = _formatter(
            screen_format, screen_style, 'screen',
            {'default': _FORMAT, 'default_with_timestamp': _FORMAT_WITH_TIME})
        if self.screen_handler is not None and self.screen_formatter is not None:
            self.screen_handler.setFormatter(self.screen_formatter)

    def get_screen_handler(self) -> Any:
        """Return the handler that writes to the screen."""
        if self.screen_handler is None:
            self.screen_handler = handlers.StreamHandler(_stdout())
            self.screen_handler.setFormatter(self.screen_formatter)
        return self.screen_handler

    def set_log_format(
        self, log_format: Optional[str], *, log_style: Optional[str] = None,
    ) -> None:
        """
        Set the format of lines in log files.

        :param log_format: 'default' or a format of :class:`logging.Formatter`; ``None`` for
            none.
        :raises ValueError: if a style is given with the named format.
        """
        override = _format_override(LOG_FORMAT_VARIABLE)
        if override is not None:
            log_format, log_style = override, '{'
        self.file_formatter = _formatter(
            log_format, log_style, 'log', {'default': _FORMAT_WITH_TIME})
        if self.file_formatter is not None:
            for handler in self.file_handlers.values():
                handler.setFormatter(self.file_formatter)

    def get_log_file_path(self, file_name: str = 'launch.log') -> str:
        """Return the path of a file in the log folder."""
        return os.path.join(self.log_dir, file_name)

    def get_log_file_handler(self, file_name: str = 'launch.log') -> Any:
        """Return the handler that writes to a file in the log folder."""
        if file_name not in self.file_handlers:
            path = self.get_log_file_path(file_name)
            handler = self.log_handler_factory(path, encoding='utf-8')
            handler.setFormatter(self.file_formatter)
            self.file_handlers[file_name] = handler
        return self.file_handlers[file_name]


def _formatter(
    text: Optional[str], style: Optional[str], kind: str, named: Dict[str, str],
) -> Optional[logging.Formatter]:
    if text is None:
        return None
    if text in named:
        if style is not None:
            raise ValueError(
                f'Cannot set a custom format style for the "{text}" {kind} format.')
        text = named[text]
    return logging.Formatter(text, style='{' if style is None else style)


def _stdout() -> codecs.StreamWriter:
    """Return stdout without characters that its encoding does not have."""
    encoding = locale.getpreferredencoding(False)

    def encode(text: str, errors: str = 'replace') -> Tuple[str, str]:
        return text.encode(encoding, errors).decode(encoding, errors), text

    stream = codecs.StreamWriter(sys.stdout, errors='replace')
    stream.encode = encode
    return stream


launch_config = LaunchConfig()


def log_launch_config(*, logger: logging.Logger = logging.root) -> None:
    """Log the settings."""
    if launch_config.file_handlers:
        logger.info(f'All log files can be found below {launch_config.log_dir}')
    level = logging.getLevelName(logging.root.getEffectiveLevel())
    logger.info(f'Default logging verbosity is set to {level}')


def get_logger(name: Optional[str] = None) -> logging.Logger:
    """Return a logger that writes to the screen and to ``launch.log``."""
    logger = logging.getLogger(name)
    for handler in (launch_config.get_screen_handler(), launch_config.get_log_file_handler()):
        if handler not in logger.handlers:
            logger.addHandler(handler)
    return logger


Destinations = 'Dict[str, Set[str]]'

_NAMED_OUTPUTS: Dict[str, Dict[str, Set[str]]] = {
    'screen': {'both': {'screen'}},
    'log': {'both': {'log'}, 'stderr': {'screen'}},
    'both': {'both': {'log', 'screen'}},
    'own_log': {'both': {'own_log'}, 'stdout': {'own_log'}, 'stderr': {'own_log'}},
    'full': {
        'both': {'screen', 'log', 'own_log'}, 'stdout': {'own_log'}, 'stderr': {'own_log'}},
}
_SOURCES = ('stdout', 'stderr', 'both')
_DESTINATIONS = ('screen', 'log', 'own_log')


def _one_of(names: Any) -> str:
    return ', '.join(f'"{name}"' for name in names)


def _normalize_output_configuration(config: Any) -> Dict[str, Set[str]]:
    """Return the destinations of each source."""
    result: Dict[str, Set[str]] = {source: set() for source in _SOURCES}
    if isinstance(config, str):
        if config not in _NAMED_OUTPUTS:
            raise ValueError(
                f'{config} is not a valid standard output config i.e. {_one_of(_NAMED_OUTPUTS)}')
        result.update(_NAMED_OUTPUTS[config])
        return result
    if not isinstance(config, dict):
        raise ValueError(f'{config} is not a valid output configuration')
    for source, destinations in config.items():
        if source not in _SOURCES:
            raise ValueError(f'{source} is not a valid output source i.e. {_one_of(_SOURCES)}')
        names = {destinations} if isinstance(destinations, str) else set(destinations)
        for name in names:
            if name not in _DESTINATIONS:
                raise ValueError(
                    f'{name} is not a valid output destination i.e. {_one_of(_DESTINATIONS)}')
        result[source] = names
    return result


def destinations(output: Any) -> Dict[str, List[str]]:
    """Return where stdout and stderr of a process go; see :func:`get_output_loggers`."""
    config = _normalize_output_configuration(output)
    return {
        source: [name for name in _DESTINATIONS if name in config['both'] | config[source]]
        for source in ('stdout', 'stderr')}


def _add_handler(logger: logging.Logger, handler: Any, text: Optional[str] = None) -> None:
    if handler not in logger.handlers:
        if text is not None:
            handler.setFormatterFor(logger, logging.Formatter(text, style='{'))
        logger.addHandler(handler)


def get_output_loggers(
    process_name: str, output_config: Union[str, Dict[str, Union[str, Set[str]]]],
) -> Tuple[logging.Logger, logging.Logger]:
    """
    Return the loggers for what a process writes to stdout and stderr.

    :param output_config: 'screen', 'log', 'both', 'own_log' or 'full'; or the destinations
        'screen', 'log' and 'own_log' of each of 'stdout', 'stderr' and 'both'.
    :raises ValueError: if it is something else.
    """
    config = _normalize_output_configuration(output_config)
    loggers: List[logging.Logger] = []
    for source in ('stdout', 'stderr'):
        logger = logging.getLogger(f'{process_name}-{source}')
        destinations = config['both'] | config[source]
        if 'screen' in destinations:
            _add_handler(logger, launch_config.get_screen_handler(), '{msg}')
        if 'log' in destinations:
            _add_handler(
                logger, launch_config.get_log_file_handler(), '{created:.7f} {msg}')
        if 'own_log' in config[source]:
            own = launch_config.get_log_file_handler(f'{process_name}-{source}.log')
            own.setFormatter(logging.Formatter('{msg}', style='{'))
            _add_handler(logger, own)
        if 'own_log' in config['both']:
            shared = launch_config.get_log_file_handler(f'{process_name}.log')
            shared.setFormatter(logging.Formatter('{msg}', style='{'))
            _add_handler(logger, shared)
        loggers.append(logger)
    return loggers[0], loggers[1]


_Logger: Any = logging.getLoggerClass()


class LaunchLogger(_Logger):
    """A logger that passes nothing on to the root logger."""

    all_loggers: List[logging.Logger] = []

    def __new__(cls, *args: Any, **kwargs: Any) -> LaunchLogger:
        """Make a logger and remember it."""
        logger = super().__new__(cls)
        LaunchLogger.all_loggers.append(logger)
        return logger

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.propagate = False


def reset() -> None:
    """Go back to the defaults, and take the handlers from all loggers."""
    for logger in LaunchLogger.all_loggers:
        logger.setLevel(logging.NOTSET)
        del logger.handlers[:]
    launch_config.reset()
    logging.setLoggerClass(LaunchLogger)


reset()
