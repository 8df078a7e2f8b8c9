"""Error of a launch file that cannot be read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional


class InvalidLaunchFileError(Exception):
    """A launch file that no loader takes; it has the errors of the loaders."""

    def __init__(
        self, extension: str = '', *, likely_errors: Optional[List[Exception]] = None,
    ) -> None:
        super().__init__()
        self._extension = extension
        self._likely_errors = likely_errors
        if not extension or not likely_errors:
            self._error_message = (
                'The launch file may have a syntax error, or its format is unknown')
            return
        noun = 'exception' if len(likely_errors) == 1 else 'multiple exceptions'
        lines = [f'Caught {noun} when trying to load file of format [{extension}]:']
        lines.extend(f' - {type(error).__name__}: {error}' for error in likely_errors)
        self._error_message = '\n'.join(lines)
        self.__cause__ = likely_errors[0]

    def __str__(self) -> str:
        return self._error_message
