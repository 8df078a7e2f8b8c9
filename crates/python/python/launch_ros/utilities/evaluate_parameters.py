"""Values of parameters in a launch context."""

from __future__ import annotations

import collections.abc
from typing import Any, Dict

from launch.substitution import Substitution
from launch.utilities import ensure_argument_type, perform_substitutions
from launch.utilities.yaml_reader import YamlError, load_yaml

from launch_ros.parameter_descriptions import (
    Parameter as ParameterDescription, ParameterFile, ParameterValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext

    from launch_ros.parameters_type import (
        EvaluatedParameters, EvaluatedParameterValue, Parameters, ParametersDict,
    )

_STRING_HINT = (
    'If the parameter is meant to be a string, try wrapping it in '
    'launch_ros.parameter_descriptions.ParameterValue(value, value_type=str)')


def _checked_list(value: Any, name: str) -> Any:
    kind = type(value[0]) if value else None
    if kind not in (bool, int, float, str) or not all(isinstance(each, kind) for each in value):
        raise TypeError(
            'Expected a non-empty sequence, with items of uniform type. Allowed sequence item '
            f'types are bool, int, float, str. Got inconsistent input for "{name}"')
    return tuple(value)


def _load(text: str, name: str) -> Any:
    try:
        return load_yaml(text)
    except YamlError as error:
        raise TypeError(
            f'Unable to parse the value of parameter {name} as yaml. {_STRING_HINT}: '
            f'{error}') from error


def _value_of_text(text: str, name: str) -> EvaluatedParameterValue:
    value = _load(text or "''", name)
    if type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, list):
        return _checked_list(value, name)
    raise TypeError(
        'Allowed value types are bytes, bool, int, float, str, Sequence[bool], Sequence[int], '
        f'Sequence[float], Sequence[str]. Got {type(value)} for "{name}". {_STRING_HINT}')


class EvaluatedDict(Dict[str, Any]):
    """Values by name, and the texts that some were read from."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: Dict[str, str] = {}


def _evaluate_value(
    context: LaunchContext, value: Any, name: str, texts: Dict[str, str],
) -> EvaluatedParameterValue:
    if isinstance(value, ParameterValue):
        evaluated = value.evaluate(context)
        if value.text is not None:
            texts[name] = value.text
        return evaluated
    if not isinstance(value, tuple) or not value:
        ensure_argument_type(value, (float, int, str, bool, bytes), 'value')
        return value
    if isinstance(value[0], Substitution):
        texts[name] = perform_substitutions(context, list(value))
        return _value_of_text(texts[name], name)
    if isinstance(value[0], collections.abc.Sequence) and not isinstance(value[0], str):
        items = [perform_substitutions(context, list(each)) for each in value]
        return _checked_list([_load(item, name) for item in items], name)
    kind = type(value[0])
    return tuple(kind(each) for each in value)


def evaluate_parameter_dict(
    context: LaunchContext, parameters: ParametersDict,
) -> Dict[str, EvaluatedParameterValue]:
    """
    Return the values of normalized parameters.

    :raises TypeError: if a value is no valid one.
    """
    if not isinstance(parameters, collections.abc.Mapping):
        raise TypeError('expected dict')
    evaluated = EvaluatedDict()
    for parts, value in parameters.items():
        if not isinstance(parts, tuple):
            raise TypeError(f'Expecting tuple of substitutions got {parts!r}')
        name = perform_substitutions(context, list(parts))
        evaluated[name] = _evaluate_value(context, value, name, evaluated.texts)
    return evaluated


def evaluate_parameters(context: LaunchContext, parameters: Parameters) -> EvaluatedParameters:
    """Return the values of normalized parameters; the paths of files."""
    evaluated: List[Any] = []
    for each in parameters:
        if isinstance(each, ParameterFile):
            evaluated.append(each.evaluate(context))
        elif isinstance(each, ParameterDescription):
            evaluated.append(each)
        elif isinstance(each, collections.abc.Mapping):
            evaluated.append(evaluate_parameter_dict(context, each))
    return tuple(evaluated)
