"""Descriptions of parameters: a value, a parameter, and a file of parameters."""

from __future__ import annotations

import os
import pathlib

from launch.frontend.parse_substitution import parse_substitution
from launch.launch_guard import write_temporary_file
from launch.plan import plan_of
from launch._regular_file import read_regular
from launch.some_substitutions_type import SomeSubstitutionsType_types_tuple
from launch.substitutions import SubstitutionFailure
from launch.utilities import (
    ensure_argument_type, normalize_to_list_of_substitutions, perform_substitutions,
)
from launch.utilities.type_utils import (
    coerce_to_type, is_normalized_substitution, normalize_typed_substitution,
    perform_typed_substitution,
)
from launch.utilities.yaml_reader import YamlError, load_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Text, Tuple, Union

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution
    from launch.utilities.type_utils import AllowedTypesType, SomeValueType
    from launch.utilities.typing_file_path import FilePath

    from launch_ros.parameters_type import EvaluatedParameterValue


class ParameterValue:
    """A value of a parameter, with its type; without one it is that of YAML."""

    def __init__(
        self, value: SomeValueType, *, value_type: Optional[AllowedTypesType] = None,
    ) -> None:
        self.__value = normalize_typed_substitution(value, value_type)
        self.__value_type = value_type
        self.__evaluated: Optional[EvaluatedParameterValue] = None
        self.__text: Optional[str] = None

    @property
    def value(self) -> Any:
        """The value once evaluated, else its normal form."""
        return self.__value if self.__evaluated is None else self.__evaluated

    @property
    def value_type(self) -> Optional[AllowedTypesType]:
        """The type."""
        return self.__value_type

    @property
    def text(self) -> Optional[str]:
        """The text that the value was read from, if YAML has given it its type."""
        return self.__text

    def __str__(self) -> str:
        return (
            f'launch_ros.description.ParameterValue(value={self.value}, '
            f'value_type={self.value_type})')

    def evaluate(self, context: LaunchContext) -> EvaluatedParameterValue:
        """Return the value in this context; it stays."""
        value = self.value
        if self.__value_type is None and is_normalized_substitution(value):
            self.__text = perform_substitutions(context, value)
            value = coerce_to_type(self.__text)
        self.__evaluated = perform_typed_substitution(context, value, self.__value_type)
        return self.__evaluated


class Parameter:
    """A parameter: a name and a value."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        value: SomeValueType,
        *,
        value_type: Optional[AllowedTypesType] = None,
    ) -> None:
        ensure_argument_type(name, SomeSubstitutionsType_types_tuple, 'name')
        self.__name = normalize_to_list_of_substitutions(name)
        self.__value = ParameterValue(value, value_type=value_type)
        self.__evaluated: Optional[Tuple[Text, EvaluatedParameterValue]] = None

    @property
    def name(self) -> Union[List[Substitution], Text]:
        """The name once evaluated, else its substitutions."""
        return self.__name if self.__evaluated is None else self.__evaluated[0]

    @property
    def value(self) -> Any:
        """The value once evaluated, else its normal form."""
        return self.__value.value

    @property
    def value_type(self) -> Optional[AllowedTypesType]:
        """The type."""
        return self.__value.value_type

    def __str__(self) -> str:
        return (
            f'launch_ros.description.Parameter(name={self.name}, value={self.value}, '
            f'value_type={self.value_type})')

    def evaluate(self, context: LaunchContext) -> Tuple[Text, EvaluatedParameterValue]:
        """Return name and value in this context; they stay."""
        if self.__evaluated is None:
            name = perform_substitutions(context, self.__name)
            self.__evaluated = name, self.__value.evaluate(context)
        return self.__evaluated


class ParameterFile:
    """A parameter file; with ``allow_substs``, substitutions in it are performed."""

    def __init__(
        self,
        param_file: Union[FilePath, SomeSubstitutionsType],
        *,
        allow_substs: Union[bool, SomeSubstitutionsType] = False,
    ) -> None:
        self.__evaluated: Optional[pathlib.Path] = None
        self.__is_temporary = False
        ensure_argument_type(
            param_file, SomeSubstitutionsType_types_tuple + (os.PathLike, bytes), 'param_file',
            'ParameterFile()')
        self.__param_file: Union[List[Substitution], FilePath] = param_file
        if isinstance(param_file, SomeSubstitutionsType_types_tuple) and not isinstance(
                param_file, (os.PathLike, bytes)):
            self.__param_file = normalize_to_list_of_substitutions(param_file)
        self.__allow_substs = normalize_typed_substitution(allow_substs, data_type=bool)
        self.__evaluated_allow_substs: Optional[bool] = None

    @property
    def param_file(self) -> Union[FilePath, List[Substitution]]:
        """The path once evaluated, else what was given."""
        return self.__param_file if self.__evaluated is None else self.__evaluated

    @property
    def allow_substs(self) -> Union[bool, List[Substitution]]:
        """Whether substitutions are performed."""
        if self.__evaluated_allow_substs is None:
            return self.__allow_substs
        return self.__evaluated_allow_substs

    def __str__(self) -> str:
        return (
            f'launch_ros.description.ParameterFile(param_file={self.param_file}, '
            f'allow_substs={self.allow_substs})')

    def evaluate(self, context: LaunchContext) -> pathlib.Path:
        """
        Return the path of the file, or of a temporary one with substitutions performed.

        :raises SubstitutionFailure: if the result is not valid YAML.
        """
        # The end of an earlier launch has deleted its temporary files.
        if self.__evaluated is not None and not (
                self.__is_temporary and not self.__evaluated.is_file()):
            return self.__evaluated
        path = self.__param_file
        if isinstance(path, list):
            path = perform_substitutions(context, path)
        path = pathlib.Path(os.fsdecode(path))
        self.__evaluated_allow_substs = perform_typed_substitution(
            context, self.__allow_substs, data_type=bool)
        plan = plan_of(context)
        if plan is not None and not path.is_file():
            plan.add_missing(f"parameter file '{path}' is not there")
        elif self.__evaluated_allow_substs:
            path = self.__with_substitutions(context, path)
        self.__evaluated = path
        return path

    def __with_substitutions(
        self, context: LaunchContext, path: pathlib.Path,
    ) -> pathlib.Path:
        text = perform_substitutions(context, parse_substitution(read_regular(path)))
        try:
            load_yaml(text)
        except YamlError as error:
            raise SubstitutionFailure(
                'The substituted parameter file is not a valid yaml file: '
                f'{path}: {error}') from error
        written = pathlib.Path(write_temporary_file(context, text))
        self.__is_temporary = True
        return written

    def cleanup(self) -> None:
        """Delete the temporary file."""
        if self.__is_temporary and self.__evaluated is not None:
            self.__evaluated.unlink(missing_ok=True)
            self.__evaluated = None

    def __del__(self) -> None:
        self.cleanup()
