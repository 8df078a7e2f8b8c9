"""Substitution: the output of a command."""

from __future__ import annotations

import shlex
import subprocess

import launch.logging
from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType

_ON_STDERR = ('fail', 'ignore', 'warn', 'capture')


@expose_substitution('command')
class Command(Substitution):
    """
    What a command writes to stdout; it blocks until the command has ended.

    ``on_stderr`` says what output to stderr does: 'fail', 'ignore', 'warn', or 'capture' to
    add it to the value.
    """

    def __init__(
        self, command: SomeSubstitutionsType, *, on_stderr: SomeSubstitutionsType = 'fail',
    ) -> None:
        super().__init__()
        self.__command = normalize_to_list_of_substitutions(command)
        self.__on_stderr = normalize_to_list_of_substitutions(on_stderr)

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[Command], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) not in (1, 2):
            raise ValueError('command substitution expects 1 or 2 arguments')
        return cls, dict(zip(('command', 'on_stderr'), data))

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
            return context.plan.run_command(line, on_stderr)
        return run_command(line, on_stderr)


def run_command(line: str, on_stderr: str) -> str:
    """
    Run a command and return its output.

    :raises SubstitutionFailure: if it is not there or fails.
    """
    stderr = subprocess.STDOUT if on_stderr == 'capture' else subprocess.PIPE
    try:
        result = subprocess.run(
            shlex.split(line), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            text=True)
    except OSError as error:
        raise SubstitutionFailure(f"file not found: {error}; command '{line}'") from error
    except ValueError as error:
        raise SubstitutionFailure(f"the command '{line}' cannot be split: {error}") from error
    if result.returncode != 0:
        text = f'executed command failed. Command: {line}'
        if result.stderr:
            text += f'\nCaptured stderr output: {result.stderr}'
        raise SubstitutionFailure(text)
    if result.stderr and on_stderr != 'ignore':
        text = (
            f'executed command showed stderr output. Command: {line}\n'
            f'Captured stderr output:\n{result.stderr}')
        if on_stderr == 'fail':
            raise SubstitutionFailure(text)
        launch.logging.get_logger().warning(text)
    return result.stdout
