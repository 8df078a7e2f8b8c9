"""Substitution: the output of a command."""

from __future__ import annotations

import contextlib
import locale
import math
import os

import launch.logging
from launch.frontend.expose import expose_substitution
from launch.launch_guard import LaunchGuard
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions, split_words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Tuple

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

TIMEOUT_CONFIGURATION = 'command_timeout'
"""Launch configuration with the time that a command gets, in seconds."""

TIMEOUT = 600.0
"""The time that a command gets, in seconds: more than those that robots use need."""

TIMEOUT_MAX = 1e6
"""The longest time that can be given, in seconds; eleven days."""

OUTPUT_BYTES_MAX = 64 << 20
"""What a command may write, in bytes: a hundred times the largest robot descriptions."""

_SIGNAL_PERIOD = 0.1
_TERM_TIMEOUT = 1.0
_ON_STDERR = ('fail', 'ignore', 'warn', 'capture')


@expose_substitution('command')
class Command(Substitution):
    """
    What a command writes to stdout; it blocks until the command has ended.

    The launch configuration ``command_timeout`` has the time that it gets, in seconds; 600
    without one. A signal that ends the launch ends the command. It may write 64 MiB.

    ``on_stderr`` says what output to stderr does: 'fail', 'ignore', 'warn', or 'capture' to
    add it to the value.
    """

    def __init__(
        self, command: SomeSubstitutionsType, *, on_stderr: SomeSubstitutionsType = 'fail',
    ) -> None:
        super().__init__()
        self.__command = normalize_to_list_of_substitutions(command)
        self.__on_stderr = normalize_to_list_of_substitutions(on_stderr)

    parse = parse_arguments('command', 'command', 'on_stderr', optional=1, error=ValueError)

    @property
    def command(self) -> List[Substitution]:
        """The command line."""
        return self.__command

    @property
    def on_stderr(self) -> List[Substitution]:
        """What output to stderr does."""
        return self.__on_stderr

    def describe(self) -> str:
        """Return a text for people."""
        return f'Command({describe_substitutions(self.__command)})'

    def perform(self, context: LaunchContext) -> str:
        """Run the command and return its output."""
        line = perform_substitutions(context, self.__command)
        on_stderr = perform_substitutions(context, self.__on_stderr)
        if on_stderr not in _ON_STDERR:
            names = ', '.join(f"'{name}'" for name in _ON_STDERR)
            raise SubstitutionFailure(
                f"expected 'on_stderr' to be one of: {names}; got '{on_stderr}'")
        if context.plan is not None:
            return context.plan.run_command(line, on_stderr, context)
        return run_command(line, on_stderr, context)


def run_command(line: str, on_stderr: str, context: LaunchContext) -> str:
    """
    Run a command and return its output. Blocks; a signal that ends the launch interrupts it.

    :raises SubstitutionFailure: if it is not there, fails, has not ended in time, or writes too
        much or no text.
    """
    timeout = _timeout(context)
    try:
        with context._interruptible():
            code, stdout, stderr = _run(split_words(line), on_stderr, timeout, context)
    except TimeoutError as error:
        raise SubstitutionFailure(
            f"the command '{line}' has not ended within {timeout:g} s; the launch configuration "
            f"'{TIMEOUT_CONFIGURATION}' gives it more") from error
    except OSError as error:
        raise SubstitutionFailure(f"file not found: {error}; command '{line}'") from error
    except UnicodeDecodeError as error:
        raise SubstitutionFailure(
            f"the command '{line}' has written no text in {error.encoding}: {error.reason} at byte "
            f'{error.start}') from error
    except ValueError as error:
        raise SubstitutionFailure(f"the command '{line}' cannot be split: {error}") from error
    except BufferError as error:
        raise SubstitutionFailure(
            f"the command '{line}' has written more than {OUTPUT_BYTES_MAX >> 20} MiB; let it write "
            'to a file, and use the name of the file') from error
    if code != 0:
        text = f'executed command failed. Command: {line}'
        if stderr:
            text += f'\nCaptured stderr output: {stderr}'
        raise SubstitutionFailure(text)
    if stderr and on_stderr != 'ignore':
        text = (
            f'executed command showed stderr output. Command: {line}\n'
            f'Captured stderr output:\n{stderr}')
        if on_stderr == 'fail':
            raise SubstitutionFailure(text)
        launch.logging.get_logger().warning(text)
    return stdout


def _timeout(context: LaunchContext) -> float:
    text = context.launch_configurations.get(TIMEOUT_CONFIGURATION)
    if text is None:
        return TIMEOUT
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= TIMEOUT_MAX:
        raise SubstitutionFailure(
            f"the launch configuration '{TIMEOUT_CONFIGURATION}' is '{text}'; it must be a number "
            f'of seconds above 0, and at most {TIMEOUT_MAX:g}')
    return value


def _run(
    words: List[str], on_stderr: str, timeout: float, context: LaunchContext,
) -> Tuple[int, str, str]:
    """
    Return the exit code of a command, and what it writes to stdout and stderr.

    :raises TimeoutError: if it has not ended in time.
    :raises UnicodeDecodeError: if it writes no text.
    :raises BufferError: if it writes too much.
    """
    from pteros import _native
    with _guard_of(context) as guard:
        guard.start_watchdog()
        command = _native.LaunchCommand(
            words, guard.mark(dict(os.environ)), on_stderr == 'capture', OUTPUT_BYTES_MAX, timeout)
        guard.add_leader(command.pid)
        try:
            output = None
            while output is None:
                # Between two calls Python handles signals.
                output = command.wait(_SIGNAL_PERIOD)
        except BaseException:
            command.end(_TERM_TIMEOUT)
            raise
        finally:
            guard.remove_leader(command.pid)
    code, stdout, stderr = output
    return code, _text(stdout), _text(stderr)


def _text(data: bytes) -> str:
    """Return output as text, with line ends as in Python's text files."""
    text = data.decode(locale.getpreferredencoding(False))
    return text.replace('\r\n', '\n').replace('\r', '\n')


@contextlib.contextmanager
def _guard_of(context: LaunchContext) -> Iterator[LaunchGuard]:
    """Give the guard of the launch; one of its own to a command of a dry run."""
    if context.asyncio_loop is not None and context._guard is not None:
        yield context._guard
        return
    guard = LaunchGuard()
    try:
        yield guard
    finally:
        guard.close()
