"""Typed values of launch files: types, conversion of text, and typed substitutions."""

from __future__ import annotations

import collections.abc
from typing import List, Sequence, Type, Union

from launch.some_substitutions_type import SomeSubstitutionsType
from launch.substitution import Substitution
from launch.utilities.ensure_argument_type_impl import ensure_argument_type
from launch.utilities.normalize_impl import normalize_to_list_of_substitutions
from launch.utilities.perform_substitutions_impl import perform_substitutions
from launch.utilities.yaml_reader import YamlError, load_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

    from launch.launch_context import LaunchContext

ScalarTypesTuple = (int, float, bool, str)
"""Types of scalars."""
ListTypesTuple = (List[int], List[float], List[bool], List[str])
"""Types of lists."""
AllowedTypesTuple = ScalarTypesTuple + ListTypesTuple
"""Types that a value can have."""

ScalarTypesType = Type[Union[int, float, bool, str]]
ListTypesType = Type[Union[List[int], List[float], List[bool], List[str]]]
AllowedTypesType = Union[ScalarTypesType, ListTypesType]
ScalarValueType = Union[int, float, bool, str]
ListValueType = Union[List[int], List[float], List[bool], List[str]]
SequenceValueType = Union[Sequence[int], Sequence[float], Sequence[bool], Sequence[str]]
AllowedValueType = Union[ScalarValueType, SequenceValueType]
SomeScalarType = Union[SomeSubstitutionsType, ScalarValueType]
SomeSequenceType = Union[
    Sequence[Union[int, SomeSubstitutionsType]], Sequence[Union[float, SomeSubstitutionsType]],
    Sequence[Union[bool, SomeSubstitutionsType]], Sequence[Union[str, SomeSubstitutionsType]]]
SomeValueType = Union[SomeScalarType, SomeSequenceType]
NormalizedScalarType = Union[List[Substitution], ScalarValueType]
NormalizedSequenceType = Union[
    List[Union[int, List[Substitution]]], List[Union[float, List[Substitution]]],
    List[Union[bool, List[Substitution]]], List[Union[str, List[Substitution]]]]
NormalizedValueType = Union[NormalizedScalarType, NormalizedSequenceType]
StrSomeScalarType = SomeScalarType
StrSomeSequenceType = Union[
    Sequence[Union[int, str]], Sequence[Union[float, str]], Sequence[Union[bool, str]],
    Sequence[str]]
StrSomeValueType = Union[StrSomeScalarType, StrSomeSequenceType]


def is_typing_list(data_type: Any) -> bool:
    """Return whether the type is ``List`` or ``List[x]``."""
    if data_type is List:
        return True
    return getattr(data_type, '__origin__', None) in (list, List) and hasattr(
        data_type, '__args__')


def is_valid_scalar_type(data_type: AllowedTypesType) -> bool:
    """Return whether the type is one of scalars."""
    return data_type in ScalarTypesTuple


def extract_type(data_type: AllowedTypesType) -> Tuple[ScalarTypesType, bool]:
    """
    Return the scalar type, and whether the type is a list of it.

    :raises ValueError: if it is another type.
    """
    members = getattr(data_type, '__args__', None)
    is_list = bool(is_typing_list(data_type) and members)
    scalar_type = members[0] if is_list else data_type
    if not is_valid_scalar_type(scalar_type):
        raise ValueError(f'Unrecognized data type: {data_type}')
    return scalar_type, is_list


def is_instance_of_valid_type(value: Any, *, can_be_str: bool = False) -> bool:
    """Return whether the value is a scalar or a list of one type; strings may be mixed in."""
    if not isinstance(value, list):
        return isinstance(value, ScalarTypesTuple)
    member_type = next((type(each) for each in value if type(each) is not str), str)
    if member_type not in ScalarTypesTuple:
        return False
    allowed = (member_type, str) if can_be_str else member_type
    return all(isinstance(each, allowed) for each in value)


def is_instance_of(
    value: Any, data_type: Optional[AllowedTypesType] = None, *, can_be_str: bool = False,
) -> bool:
    """Return whether the value is of the type; ``None`` is any type."""
    if data_type is None:
        return is_instance_of_valid_type(value, can_be_str=can_be_str)
    scalar_type, is_list = extract_type(data_type)
    allowed = (str, scalar_type) if can_be_str else scalar_type
    if not is_list:
        return isinstance(value, allowed)
    return isinstance(value, list) and all(isinstance(each, allowed) for each in value)


def _from_yaml(text: str, reason: str, can_be_str: bool) -> Any:
    if not text:
        return text
    try:
        value = load_yaml(text)
    except YamlError as error:
        if can_be_str:
            return text
        raise ValueError(f'{reason}: it is not valid YAML\n{error}') from error
    if not is_instance_of_valid_type(value, can_be_str=can_be_str):
        raise ValueError(f'{reason}: output type is not allowed, got {type(value)}')
    return value


def coerce_to_type(
    value: str, data_type: Optional[AllowedTypesType] = None, *, can_be_str: bool = False,
) -> AllowedValueType:
    """
    Return the value that a text has as a type; ``None`` is the type that YAML gives it.

    :param can_be_str: Return the text itself where it is not of the type.
    :raises ValueError: if the text is not of the type.
    """
    ensure_argument_type(value, str, 'value', 'coerce_to_type')
    if data_type is None:
        return _from_yaml(value, f"Failed to convert '{value}' using yaml rules", can_be_str)
    scalar_type, is_list = extract_type(data_type)
    allowed = (str, scalar_type) if can_be_str else scalar_type
    if is_list:
        reason = f"Cannot convert value '{value}' to a list of '{allowed}'"
        output = _from_yaml(value, reason, can_be_str)
        if not isinstance(output, list):
            raise ValueError(reason)
        if not all(isinstance(each, allowed) for each in output):
            raise ValueError(f'{reason}, got {output}')
        return output
    if scalar_type is str:
        return value
    from pteros import _native
    try:
        return _native.typed_launch_value(value, scalar_type.__name__)
    except ValueError:
        if can_be_str:
            return value
        raise


def coerce_list(
    value: List[str], data_type: Optional[ScalarTypesType] = None, *, can_be_str: bool = False,
) -> ListValueType:
    """
    Return the values that the texts have as a type.

    :raises ValueError: if one is not of the type, or they have several types.
    """
    ensure_argument_type(value, list, 'value', 'coerce_list')
    output = [coerce_to_type(each, data_type, can_be_str=can_be_str) for each in value]
    if not is_instance_of_valid_type(output, can_be_str=can_be_str):
        raise ValueError(f'cannot convert value to {data_type}. Got value=`{value}`')
    return output


def get_typed_value(
    value: Union[str, List[str]],
    data_type: Optional[AllowedTypesType],
    *,
    can_be_str: bool = False,
) -> AllowedValueType:
    """
    Return the value that a text, or a list of texts, has as a type.

    :raises ValueError: if it is not of the type.
    :raises TypeError: if a list is to become a scalar.
    """
    if not isinstance(value, list):
        return coerce_to_type(value, data_type, can_be_str=can_be_str)
    scalar_type = None
    if data_type is not None:
        scalar_type, is_list = extract_type(data_type)
        if not is_list:
            raise TypeError(
                f"Cannot convert input '{value}' of type '{type(value)}' to '{scalar_type}'")
    return coerce_list(value, scalar_type, can_be_str=can_be_str)


def is_substitution(x: Any) -> bool:
    """Return whether it is a substitution, or an iterable of text with one in it."""
    if isinstance(x, Substitution):
        return True
    return (
        isinstance(x, collections.abc.Iterable) and len(x) > 0
        and all(isinstance(each, (Substitution, str)) for each in x)
        and any(isinstance(each, Substitution) for each in x))


def _scalar_type_of_list(value: Any) -> Optional[ScalarTypesType]:
    """Return the type of the scalars in a list; ``None`` if all are substitutions."""
    types = set()
    for each in value:
        if isinstance(each, ScalarTypesTuple):
            types.add(type(each))
        elif not is_substitution(each):
            raise TypeError(
                'value is a list, and one of the items is not a scalar, a Substitution or a '
                f"list of substitutions. Got value='{value}'")
    if types == {int, float}:
        return float
    if len(types) > 1:
        raise TypeError(f"the scalars of the list have several types. Got value='{value}'")
    return types.pop() if types else None


def normalize_typed_substitution(
    value: SomeValueType, data_type: Optional[AllowedTypesType],
) -> NormalizedValueType:
    """
    Return the value with lists of substitutions in place of other forms of them.

    :raises TypeError: if it cannot become a value of the type.
    """
    if isinstance(value, ScalarTypesTuple):
        if not is_instance_of(value, data_type):
            raise TypeError(f"value='{value}' is not an instance of {data_type}")
        return value
    if is_substitution(value):
        return normalize_to_list_of_substitutions(value)
    if not isinstance(value, collections.abc.Iterable):
        raise TypeError(
            'value should be either a scalar, a substitutions, or a mixed list of scalars and '
            f'substitutions. Got `value={value}` of type `{type(value)}`. ')
    found_type = _scalar_type_of_list(value)
    wanted_type = None
    if data_type is not None:
        wanted_type, is_list = extract_type(data_type)
        if not is_list:
            raise TypeError(
                'The provided value resolves to a list, though the required type is a scalar. '
                f"Got value='{value}', data_type='{wanted_type}'.")
    is_integers_as_float = found_type is int and wanted_type is float
    if found_type not in (None, wanted_type) and wanted_type is not None and (
            not is_integers_as_float):
        raise TypeError(
            f"Got a list of '{found_type}', expected a list of '{wanted_type}'. value='{value}'")
    convert = float if found_type is float or is_integers_as_float else (lambda each: each)
    return [
        convert(each) if isinstance(each, ScalarTypesTuple)
        else normalize_to_list_of_substitutions(each)
        for each in value]


def is_normalized_substitution(x: Any) -> bool:
    """Return whether it is a list of substitutions, and of nothing else."""
    return isinstance(x, list) and len(x) > 0 and all(
        isinstance(each, Substitution) for each in x)


def perform_typed_substitution(
    context: LaunchContext,
    value: NormalizedValueType,
    data_type: Optional[AllowedTypesType],
) -> AllowedValueType:
    """
    Return the value in this context.

    :raises TypeError: if it is a scalar of another type.
    :raises ValueError: if the text of a substitution is not of the type.
    """
    if isinstance(value, ScalarTypesTuple):
        if data_type is not None and not is_instance_of(value, data_type):
            raise TypeError(f'value=`{value}` is a scalar and not an instance of `{data_type}`')
        return value
    if is_normalized_substitution(value):
        return coerce_to_type(perform_substitutions(context, value), data_type)
    if not isinstance(value, list):
        raise TypeError(f"'{value}' is no scalar, list or list of substitutions")
    scalar_type = None
    if data_type is not None:
        scalar_type, is_list = extract_type(data_type)
        if not is_list:
            raise ValueError(
                'The input value is a list, cannot convert it to a scalar. '
                f"Got value='{value}', expected type {scalar_type}.")
    output = [
        coerce_to_type(perform_substitutions(context, each), scalar_type)
        if is_normalized_substitution(each) else each
        for each in value]
    if not is_instance_of(output, data_type):
        if scalar_type is None:
            raise ValueError('The output list is not uniform')
        raise ValueError(
            f"The output list does not match the expected type Got value='{value}', "
            f'expected type {scalar_type}.')
    return output
