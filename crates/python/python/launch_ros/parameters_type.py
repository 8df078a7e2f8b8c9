"""Types of parameters: as users give them, normalized, and evaluated."""

import pathlib
from typing import Any, Dict, Mapping, Sequence, Union

from launch.some_substitutions_type import (
    SomeSubstitutionsType, SomeSubstitutionsType_types_tuple,
)
from launch.substitution import Substitution

from launch_ros.parameter_descriptions import (
    Parameter as ParameterDescription, ParameterFile,
    ParameterValue as ParameterValueDescription,
)

_SingleValueType = Union[str, int, float, bool]
_SingleValueType_types_tuple = (str, int, float, bool)
_MultiValueType = Union[Sequence[str], Sequence[int], Sequence[float], Sequence[bool], bytes]

SomeParameterFile = Union[SomeSubstitutionsType, pathlib.Path, ParameterFile]
SomeParameterName = Sequence[Union[Substitution, str]]
SomeParameterValue = Union[
    ParameterValueDescription, SomeSubstitutionsType, Sequence[SomeSubstitutionsType],
    _SingleValueType, _MultiValueType]
SomeParameterValue_types_tuple = (
    SomeSubstitutionsType_types_tuple + _SingleValueType_types_tuple + (bytes,))
SomeParametersDict = Mapping[SomeParameterName, Any]
SomeParameters = Sequence[Union[SomeParameterFile, ParameterDescription, SomeParametersDict]]

ParameterName = Sequence[Substitution]
ParameterValue = Union[
    Sequence[Substitution], Sequence[Sequence[Substitution]], _SingleValueType, _MultiValueType,
    ParameterValueDescription]
ParametersDict = Dict[ParameterName, ParameterValue]
Parameters = Sequence[Union[ParameterFile, ParametersDict, ParameterDescription]]

EvaluatedParameterValue = Union[_SingleValueType, _MultiValueType]
EvaluatedParameters = Sequence[
    Union[pathlib.Path, ParameterDescription, Dict[str, EvaluatedParameterValue]]]

__all__ = [
    'EvaluatedParameterValue', 'EvaluatedParameters', 'ParameterFile', 'ParameterName',
    'ParameterValue', 'Parameters', 'ParametersDict', 'SomeParameterFile', 'SomeParameterName',
    'SomeParameterValue', 'SomeParameterValue_types_tuple', 'SomeParameters',
    'SomeParametersDict',
]
