"""The handlers of :mod:`logging`, each with a format per logger: ``StreamHandler`` and others."""

from __future__ import annotations

import logging
import logging.handlers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Type, Union


def with_per_logger_formatting(cls: Type[logging.Handler]) -> Type[logging.Handler]:
    """Return a subclass of a handler that formats the records of single loggers on their own."""

    class PerLoggerHandler(cls):

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._formatters: Dict[str, logging.Formatter] = {}

        def setFormatterFor(  # noqa: N802
            self, logger: Union[str, logging.Logger], formatter: logging.Formatter,
        ) -> None:
            """Set the formatter of one logger."""
            self._formatters[logger if isinstance(logger, str) else logger.name] = formatter

        def unsetFormatterFor(self, logger: Union[str, logging.Logger]) -> None:  # noqa: N802
            """Remove the formatter of one logger."""
            self._formatters.pop(logger if isinstance(logger, str) else logger.name, None)

        def format(self, record: logging.LogRecord) -> str:  # noqa: A003
            """Return the text of a record."""
            formatter = self._formatters.get(record.name)
            return super().format(record) if formatter is None else formatter.format(record)

    PerLoggerHandler.__name__ = PerLoggerHandler.__qualname__ = cls.__name__
    PerLoggerHandler.__doc__ = cls.__doc__
    return PerLoggerHandler


def __getattr__(name: str) -> Type[logging.Handler]:
    for module in (logging, logging.handlers):
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, logging.Handler):
            made = with_per_logger_formatting(found)
            globals()[name] = made
            return made
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
