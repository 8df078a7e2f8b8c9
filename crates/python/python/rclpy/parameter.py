"""Parameters of nodes."""

from __future__ import annotations

import array
from enum import Enum

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl.node_entity import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Union

    from rcl_interfaces.msg import Parameter as ParameterMsg, ParameterValue

    AllowableParameterValue = Union[
        None, bool, int, float, str, List[bytes], List[bool], List[int], List[float], List[str],
        array.array]
else:
    __getattr__ = getter_of(__name__)

PARAMETER_SEPARATOR_STRING = '.'
"""Separates the parts of a parameter's name."""

_ARRAY_FIELDS = (
    '', 'bool_value', 'integer_value', 'double_value', 'string_value', 'byte_array_value',
    'bool_array_value', 'integer_array_value', 'double_array_value', 'string_array_value')


class Parameter(Generic):
    """A parameter: a name, a type and a value."""

    class Type(Enum):
        """The types of values."""

        NOT_SET = 0
        BOOL = 1
        INTEGER = 2
        DOUBLE = 3
        STRING = 4
        BYTE_ARRAY = 5
        BOOL_ARRAY = 6
        INTEGER_ARRAY = 7
        DOUBLE_ARRAY = 8
        STRING_ARRAY = 9

        @classmethod
        def from_parameter_value(cls, parameter_value: AllowableParameterValue) -> Parameter.Type:
            """
            Return the type of a Python value.

            :raises TypeError: if no parameter can have it.
            """
            if parameter_value is None:
                return cls.NOT_SET
            if isinstance(parameter_value, bool):
                return cls.BOOL
            if isinstance(parameter_value, int):
                return cls.INTEGER
            if isinstance(parameter_value, float):
                return cls.DOUBLE
            if isinstance(parameter_value, str):
                return cls.STRING
            if isinstance(parameter_value, (list, tuple, array.array)):
                # An empty list could be of any type; bytes come first.
                for kind, element in (
                        (cls.BYTE_ARRAY, bytes), (cls.BOOL_ARRAY, bool), (cls.INTEGER_ARRAY, int),
                        (cls.DOUBLE_ARRAY, float), (cls.STRING_ARRAY, str)):
                    if all(isinstance(value, element) for value in parameter_value):
                        return kind
                raise TypeError(
                    f'the elements of {parameter_value!r} are not all of one type that parameters '
                    'can have: bytes, bool, int, float or str')
            raise TypeError(
                f'{parameter_value!r} is of type {type(parameter_value).__name__}, which no '
                'parameter can have; use bool, int, float, str, or a list of one of them')

        def check(self, parameter_value: AllowableParameterValue) -> bool:
            """Return whether a Python value is of this type."""
            if self is Parameter.Type.NOT_SET:
                return parameter_value is None
            if self is Parameter.Type.BOOL:
                return isinstance(parameter_value, bool)
            if self is Parameter.Type.INTEGER:
                return isinstance(parameter_value, int)
            if self is Parameter.Type.DOUBLE:
                return isinstance(parameter_value, float)
            if self is Parameter.Type.STRING:
                return isinstance(parameter_value, str)
            element = {
                Parameter.Type.BYTE_ARRAY: bytes, Parameter.Type.BOOL_ARRAY: bool,
                Parameter.Type.INTEGER_ARRAY: int, Parameter.Type.DOUBLE_ARRAY: float,
                Parameter.Type.STRING_ARRAY: str}[self]
            return (isinstance(parameter_value, (list, tuple, array.array))
                    and all(isinstance(value, element) for value in parameter_value))

    @classmethod
    def from_parameter_msg(cls, param_msg: ParameterMsg) -> Parameter:
        """Create a parameter from an ``rcl_interfaces/msg/Parameter``."""
        kind = Parameter.Type(value=param_msg.value.type)
        value: Any = None
        if kind is not Parameter.Type.NOT_SET:
            value = getattr(param_msg.value, _ARRAY_FIELDS[kind.value])
        return cls(param_msg.name, kind, value)

    def __init__(
        self, name: str, type_: Optional[Type] = None, value: AllowableParameterValue = None,
    ) -> None:
        """
        Create a parameter.

        :param name: The full name.
        :param type_: The type; ``None`` stands for the type of the value.
        :param value: The value.
        :raises TypeError: if ``type_`` is no :class:`Parameter.Type`, or no parameter can have
            the value.
        :raises ValueError: if the value is of another type.
        """
        if type_ is None:
            type_ = Parameter.Type.from_parameter_value(value)
        elif not isinstance(type_, Parameter.Type):
            raise TypeError(f"type must be an instance of '{Parameter.Type!r}', got {type_!r}")
        elif not type_.check(value):
            raise ValueError(f"Type '{type_}' and value '{value}' do not agree")
        self._type_ = type_
        self._name = name
        self._value = value

    @classmethod
    def _of(cls, name: str, number: int, value: Any) -> Parameter:
        """Create a parameter of a value whose type has this number."""
        parameter = cls.__new__(cls)
        parameter._type_ = cls.Type(number)
        parameter._name = name
        parameter._value = value
        return parameter

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parameter):
            return NotImplemented
        return (
            (self._name, self._type_) == (other._name, other._type_)
            and _as_list(self._value) == _as_list(other._value))

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'Parameter({self._name!r}, {self._type_}, {self._value!r})'

    @property
    def name(self) -> str:
        """The full name."""
        return self._name

    @property
    def type_(self) -> Parameter.Type:
        """The type."""
        return self._type_

    @property
    def value(self) -> Any:
        """The value; ``None`` if it is not set."""
        return self._value

    def get_parameter_value(self) -> ParameterValue:
        """Return the value as an ``rcl_interfaces/msg/ParameterValue``."""
        from rcl_interfaces.msg import ParameterValue
        value = ParameterValue(type=self._type_.value)
        if self._type_ is not Parameter.Type.NOT_SET:
            setattr(value, _ARRAY_FIELDS[self._type_.value], self._value)
        return value

    def to_parameter_msg(self) -> ParameterMsg:
        """Return the parameter as an ``rcl_interfaces/msg/Parameter``."""
        from rcl_interfaces.msg import Parameter as ParameterMsg
        return ParameterMsg(name=self._name, value=self.get_parameter_value())


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, array.array)) else value


def get_parameter_value(string_value: str) -> ParameterValue:
    """
    Return the value that a text stands for on a command line, such as ``[1, 2]``.

    A text that is no YAML, and a list of mixed elements, is a string. As in ROS 2, ``1e3`` and
    ``nan`` are strings too: YAML 1.1 writes ``1.0e+3`` and ``.nan``.
    """
    from launch.utilities.yaml_reader import load_yaml
    from rcl_interfaces.msg import ParameterValue
    try:
        value = load_yaml(string_value) if string_value.strip() else string_value
        kind = (Parameter.Type.BOOL_ARRAY if value == []
                else Parameter.Type.from_parameter_value(value))
    except (ValueError, TypeError):
        value = string_value
        kind = Parameter.Type.STRING
    if kind is Parameter.Type.NOT_SET:
        value = string_value
        kind = Parameter.Type.STRING
    result = ParameterValue(type=kind.value)
    setattr(result, _ARRAY_FIELDS[kind.value], value)
    return result


def parameter_value_to_python(parameter_value: ParameterValue) -> Any:
    """
    Return a ``ParameterValue`` as a Python value.

    :raises RuntimeError: if its type does not exist.
    """
    kind = parameter_value.type
    if kind == 0:
        return None
    if not 0 < kind < len(_ARRAY_FIELDS):
        raise RuntimeError(
            f'unexpected parameter type {kind}; types are 0 to {len(_ARRAY_FIELDS) - 1}')
    value = getattr(parameter_value, _ARRAY_FIELDS[kind])
    return list(value) if kind >= 5 else value


def parameter_dict_from_yaml_file(
    parameter_file: str, use_wildcard: bool = False,
    target_nodes: Optional[List[str]] = None, namespace: str = '',
) -> Dict[str, ParameterMsg]:
    """
    Read a parameter file.

    :param parameter_file: Path of the file.
    :param use_wildcard: Take the parameters of the node ``/**`` as well.
    :param target_nodes: Full names of the nodes whose parameters are taken; ``None`` stands for
        all nodes.
    :param namespace: A prefix of all parameter names.
    :returns: parameters by their name.
    :raises FileNotFoundError: if the file is not there.
    :raises RuntimeError: if it is no parameter file, or a target node is not in it.
    """
    with open(parameter_file):
        pass
    by_node = _native.parse_parameter_file(str(parameter_file))
    chosen: List[str] = []
    if use_wildcard and '/**' in by_node:
        chosen.append('/**')
    if target_nodes is not None:
        for name in target_nodes:
            key = name if name in by_node else name.lstrip('/')
            if key not in by_node:
                if not chosen:
                    raise RuntimeError(
                        f'Param file does not contain any valid parameters for node {name!r}; it '
                        f'has parameters for {", ".join(by_node) or "no node"}')
                continue
            chosen.append(key)
    else:
        chosen.extend(name for name in by_node if name != '/**')
    result: Dict[str, ParameterMsg] = {}
    for node in chosen:
        for name, value in by_node[node].items():
            full_name = f'{namespace}{PARAMETER_SEPARATOR_STRING}{name}' if namespace else name
            result[full_name] = Parameter(full_name, value=value).to_parameter_msg()
    return result
