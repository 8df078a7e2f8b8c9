"""Executable: a command with its environment."""

from __future__ import annotations

import itertools
import os
import re

from launch.substitutions import LaunchConfiguration
from launch.utilities import (
    normalize_to_list_of_substitutions, perform_substitutions, split_words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

    from launch.action import Action
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution

    Variables = Dict[SomeSubstitutionsType, SomeSubstitutionsType]
    NormalizedVariables = List[Tuple[List[Substitution], List[Substitution]]]

_process_numbers = itertools.count(1)


def _normalized_variables(variables: Optional[Variables]) -> Optional[NormalizedVariables]:
    if variables is None:
        return None
    return [
        (normalize_to_list_of_substitutions(name), normalize_to_list_of_substitutions(value))
        for name, value in variables.items()]


def _performed_variables(
    context: LaunchContext, variables: NormalizedVariables,
) -> Dict[str, str]:
    return {
        perform_substitutions(context, name): perform_substitutions(context, value)
        for name, value in variables}


def _words(context: LaunchContext, part: List[Substitution]) -> List[str]:
    """Return the word of a part of a command, or the words of a program in a package."""
    words = getattr(part[0], 'words', None) if len(part) == 1 else None
    return words(context) if words else [perform_substitutions(context, part)]


class Executable:
    """A command, its working folder and its environment."""

    def __init__(
        self,
        *,
        cmd: Iterable[SomeSubstitutionsType],
        prefix: Optional[SomeSubstitutionsType] = None,
        name: Optional[SomeSubstitutionsType] = None,
        cwd: Optional[SomeSubstitutionsType] = None,
        env: Optional[Variables] = None,
        additional_env: Optional[Variables] = None,
        arguments: Optional[Iterable[SomeSubstitutionsType]] = None,
    ) -> None:
        """
        Make one.

        :param cmd: The program and its arguments.
        :param prefix: A command to put in front, split as a shell does; else that of the
            launch configuration 'launch-prefix', for programs whose names match
            'launch-prefix-filter'.
        :param name: The beginning of the process's name; else that of the program.
        :param cwd: The working folder.
        :param env: The whole environment, in place of that of the launch.
        :param additional_env: Variables to add.
        :param arguments: Further arguments.
        """
        self.__cmd = [
            normalize_to_list_of_substitutions(part) for part in (*cmd, *(arguments or ()))]
        self.__prefix_filter = None
        if prefix is None:
            prefix = LaunchConfiguration('launch-prefix', default='')
            self.__prefix_filter = normalize_to_list_of_substitutions(
                LaunchConfiguration('launch-prefix-filter', default=''))
        self.__prefix = normalize_to_list_of_substitutions(prefix)
        self.__name = None if name is None else normalize_to_list_of_substitutions(name)
        self.__cwd = None if cwd is None else normalize_to_list_of_substitutions(cwd)
        self.__env = _normalized_variables(env)
        self.__additional_env = _normalized_variables(additional_env)
        self.__arguments = arguments
        self.__final_cmd: Optional[List[str]] = None
        self.__final_cwd: Optional[str] = None
        self.__final_env: Optional[Dict[str, str]] = None
        self.__final_name: Optional[str] = None

    @property
    def name(self) -> Optional[List[Substitution]]:
        """The beginning of the process's name."""
        return self.__name

    @property
    def prefix(self) -> List[Substitution]:
        """The command in front."""
        return self.__prefix

    @property
    def cmd(self) -> List[List[Substitution]]:
        """The program and its arguments."""
        return self.__cmd

    @property
    def cwd(self) -> Optional[List[Substitution]]:
        """The working folder."""
        return self.__cwd

    @property
    def env(self) -> Optional[NormalizedVariables]:
        """The whole environment."""
        return self.__env

    @property
    def additional_env(self) -> Optional[NormalizedVariables]:
        """The variables to add."""
        return self.__additional_env

    @property
    def arguments(self) -> Any:
        """The further arguments."""
        return self.__arguments

    @property
    def final_name(self) -> Optional[str]:
        """The process's name, once prepared."""
        return self.__final_name

    @property
    def final_cmd(self) -> Optional[List[str]]:
        """The command, once prepared."""
        return self.__final_cmd

    @property
    def final_cwd(self) -> Optional[str]:
        """The working folder, once prepared."""
        return self.__final_cwd

    @property
    def final_env(self) -> Optional[Dict[str, str]]:
        """The environment, once prepared."""
        return self.__final_env

    def prepare(self, context: LaunchContext, action: Action) -> None:
        """Evaluate all substitutions."""
        first, *rest = (_words(context, part) for part in self.__cmd)
        command = [*first, *(word for words in rest for word in words)]
        # The last word of a built-in node is its name.
        program = os.path.basename(first[-1])
        name = program if self.__name is None else perform_substitutions(context, self.__name)
        is_prefixed = True
        if self.__prefix_filter is not None:
            pattern = perform_substitutions(context, self.__prefix_filter)
            is_prefixed = re.match(pattern, program) is not None
        if is_prefixed:
            command = [*split_words(perform_substitutions(context, self.__prefix)), *command]
        self.__final_cmd = command
        self.__final_name = f'{name}-{next(_process_numbers)}'
        self.__final_cwd = (
            None if self.__cwd is None else perform_substitutions(context, self.__cwd))
        environment = dict(context.environment)
        if self.__env is not None:
            environment = _performed_variables(context, self.__env)
        environment.update(_performed_variables(context, self.__additional_env or []))
        self.__final_env = environment
