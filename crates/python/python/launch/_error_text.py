"""Text of errors: their place in a launch file, their kind and their reason, in one line."""

from __future__ import annotations

import os
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from launch.launch_context import LaunchContext

_PLACE = '_launch_place'
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def _is_of_user(path: str) -> bool:
    """Return whether a source file belongs to neither the wheel's packages nor Python."""
    path = os.path.abspath(path)
    is_other = not path.startswith((_OWN, _LIBRARY))
    return os.path.isfile(path) and (is_other or path.endswith('.launch.py'))


def place_of_caller() -> Optional[str]:
    """Return file and line of the launch file that is running; ``None`` if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OWN) and _is_of_user(path):
            return f'{path}:{frame.f_lineno}'
        frame = frame.f_back
    return None


def note_place(error: BaseException, place: Optional[str], context: LaunchContext) -> None:
    """Keep the place of the innermost action that has failed; its file if it has no line."""
    if place is None:
        place = context.get_locals_as_dict().get('current_launch_file_path')
    if place is not None and not hasattr(error, _PLACE):
        setattr(error, _PLACE, place)


def place_of(error: BaseException) -> str:
    """Return the place of an error with a colon; an empty text if nothing is known of it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f'{error.filename}:{error.lineno}: '
    place = getattr(error, _PLACE, None)
    for frame in traceback.extract_tb(error.__traceback__):
        if _is_of_user(frame.filename):
            place = f'{frame.filename}:{frame.lineno}'
    return f'{place}: ' if place else ''


def escape_controls(text: str) -> str:
    """Return the text with escapes in place of control characters, except line feed and tab."""
    return ''.join(
        each if each.isprintable() or each in '\n\t' else
        each.encode('unicode_escape', 'backslashreplace').decode() for each in text)


def describe_error(error: BaseException) -> str:
    """Return the place of an error in a launch file, its kind and its text."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    kind = type(error).__name__
    cause = error.__cause__
    if kind == 'InvalidLaunchFileError' and cause is not None:
        if hasattr(error, _PLACE) and not hasattr(cause, _PLACE):
            setattr(cause, _PLACE, getattr(error, _PLACE))
        return describe_error(cause)
    if isinstance(error, SyntaxError):
        text = error.msg
    return escape_controls(f'{place_of(error)}{kind}: {text}')
