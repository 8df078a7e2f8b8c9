"""Normal form of parameters: substitutions in tuples, nested names joined by dots."""

from __future__ import annotations

import collections.abc

from launch.some_substitutions_type import SomeSubstitutionsType_types_tuple
from launch.substitution import Substitution
from launch.substitutions import TextSubstitution
from launch.utilities import ensure_argument_type, normalize_to_list_of_substitutions
from launch.utilities.yaml_writer import yaml_text

from launch_ros.parameter_descriptions import (
    Parameter as ParameterDescription, ParameterFile, ParameterValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

    from launch_ros.parameters_type import Parameters, ParametersDict, SomeParameters


def _kind(value: Any) -> type:
    """Return what a member of a list is, for the choice of the list's form."""
    ensure_argument_type(
        value, (float, int, str, bool, *SomeSubstitutionsType_types_tuple), 'subvalue')
    for kind in (Substitution, str, bool, int, float):
        if isinstance(value, kind):
            return kind
    return tuple


def _normalize_list(value: Sequence[Any]) -> Tuple[Any, ...]:
    kinds = {_kind(each) for each in value}
    if kinds == {int} or kinds == {bool}:
        return tuple(value)
    if kinds == {float} or kinds == {int, float}:
        return tuple(float(each) for each in value)
    if Substitution in kinds and kinds <= {str, Substitution}:
        # The parts of one text.
        return tuple(normalize_to_list_of_substitutions(value))
    return tuple(
        normalize_to_list_of_substitutions(
            yaml_text(each) if isinstance(each, (float, int, bool, str)) else each)
        for each in value)


def _normalize_value(value: Any) -> Any:
    if isinstance(value, ParameterValue):
        return value
    if isinstance(value, str):
        return tuple(normalize_to_list_of_substitutions(yaml_text(value)))
    if isinstance(value, Substitution):
        return tuple(normalize_to_list_of_substitutions(value))
    if isinstance(value, (float, bool, int, bytes)):
        return value
    if isinstance(value, collections.abc.Sequence):
        return _normalize_list(value)
    raise TypeError(f'Unexpected type for parameter value {value!r}')


def normalize_parameter_dict(
    parameters: Any, *, _prefix: Optional[Sequence[Substitution]] = None,
) -> ParametersDict:
    """
    Return the normal form of a mapping.

    :raises TypeError: if a value cannot be one of a parameter.
    """
    if not isinstance(parameters, collections.abc.Mapping):
        raise TypeError('expected dict')
    normalized: Dict[Any, Any] = {}
    for name, value in parameters.items():
        parts = normalize_to_list_of_substitutions(name)
        if _prefix:
            parts = [*_prefix, TextSubstitution(text='.'), *parts]
        if isinstance(value, collections.abc.Mapping):
            normalized.update(normalize_parameter_dict(value, _prefix=parts))
        else:
            normalized[tuple(parts)] = _normalize_value(value)
    return normalized


def normalize_parameters(parameters: SomeParameters) -> Parameters:
    """
    Return the normal form of a list of mappings, files and parameters.

    :raises TypeError: if it is something else.
    """
    if isinstance(parameters, str) or not isinstance(parameters, collections.abc.Sequence):
        raise TypeError(f'Expecting list of parameters, got {parameters}')
    normalized: List[Any] = []
    for each in parameters:
        if isinstance(each, collections.abc.Mapping):
            normalized.append(normalize_parameter_dict(each))
        elif isinstance(each, (ParameterDescription, ParameterFile)):
            normalized.append(each)
        else:
            # It raises a TypeError if it is no path either.
            normalized.append(ParameterFile(each))
    return tuple(normalized)
