"""The parameters of a node: declarations, descriptors, callbacks and events."""

from __future__ import annotations

import warnings
from types import MappingProxyType

from pteros import _native
from rcl_interfaces.msg import ParameterDescriptor, ParameterValue
from rclpy.exceptions import ParameterAlreadyDeclaredException, ParameterNotDeclaredException
from rclpy.parameter import PARAMETER_SEPARATOR_STRING, Parameter, parameter_value_to_python
from rclpy.validate_parameter_name import validate_parameter_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

    from rcl_interfaces.msg import ListParametersResult, SetParametersResult

    PreSetCallback = Callable[[List[Parameter]], List[Parameter]]
    OnSetCallback = Callable[[List[Parameter]], SetParametersResult]
    PostSetCallback = Callable[[List[Parameter]], None]


class NodeParameters:
    """
    The part of a node that has parameters.

    The native store holds them. It calls the callbacks of the lists here, latest first, and
    publishes the parameter events with ``_parameter_event_publisher``.
    """

    PARAM_REL_TOL = 1e-6
    """Relative tolerance of the limits and steps of floating point ranges; read-only."""

    _parameter_store: _native.ParameterStore

    def _init_parameters(self) -> None:
        self._pre_set_parameters_callbacks: List[PreSetCallback] = []
        self._on_set_parameters_callbacks: List[OnSetCallback] = []
        self._post_set_parameters_callbacks: List[PostSetCallback] = []

    @property
    def _parameters(self) -> Mapping[str, Parameter]:
        # A copy: assigning to it must fail, for it would have no effect.
        return MappingProxyType(
            {each.name: each for each in self._parameter_store.with_prefix('')})

    @property
    def _parameter_overrides(self) -> Mapping[str, Parameter]:
        return MappingProxyType(self._parameter_store.overrides())

    # --- declaring

    def declare_parameter(
        self, name: str, value: Any = None, descriptor: Optional[ParameterDescriptor] = None,
        ignore_override: bool = False,
    ) -> Parameter:
        """
        Declare a parameter and set its first value.

        :param name: The full name.
        :param value: The default value, or a :class:`Parameter.Type` for a parameter that has
            that type and no default.
        :param descriptor: Description, range and so on.
        :param ignore_override: Do not use the value of an override.
        :returns: the parameter with its value.
        :raises ParameterAlreadyDeclaredException: if it is declared.
        :raises InvalidParameterException: if the name is invalid.
        :raises InvalidParameterValueException: if a callback or the range rejects the value.
        :raises InvalidParameterTypeException: if the override has another type.
        """
        if value is None and descriptor is None:
            declaration: Tuple = (name,)
        else:
            declaration = (
                name, value, ParameterDescriptor() if descriptor is None else descriptor)
        return self.declare_parameters('', [declaration], ignore_override)[0]

    def declare_parameters(
        self, namespace: str, parameters: List[Tuple], ignore_override: bool = False,
    ) -> List[Parameter]:
        """
        Declare parameters, in order, until one fails.

        :param namespace: A prefix of the names.
        :param parameters: Tuples of a name, a default or :class:`Parameter.Type`, and an
            optional descriptor.
        :param ignore_override: Do not use the values of overrides.
        :returns: the parameters with their values.
        :raises TypeError: if a tuple is malformed.
        :raises ValueError: if a parameter has neither a type nor a default.
        """
        declarations = [
            self._parse_declaration(index, namespace, declaration)
            for index, declaration in enumerate(parameters)]
        existing = [each.name for each, _ in declarations if self.has_parameter(each.name)]
        if existing:
            raise ParameterAlreadyDeclaredException(existing)
        # Unlike in rclpy, only the last tuple of a name is declared.
        declared = {
            name: self._parameter_store.declare(self, parameter, descriptor, ignore_override)
            for name, (parameter, descriptor) in {each[0].name: each for each in declarations}.items()}
        return [declared[parameter.name] for parameter, _ in declarations]

    def _parse_declaration(
        self, index: int, namespace: str, declaration: Tuple,
    ) -> Tuple[Parameter, ParameterDescriptor]:
        """Return a parameter with its default, and its descriptor with name and type."""
        if not 1 <= len(declaration) <= 3:
            raise TypeError(
                f'Invalid parameter tuple length at index {index} in parameters list: '
                f'{declaration}; expecting length between 1 and 3')
        name = declaration[0]
        if not isinstance(name, str):
            raise TypeError(
                f'First element {name} at index {index} in parameters list is not a str.')
        if namespace:
            name = f'{namespace}.{name}'
        validate_parameter_name(name)
        descriptor = declaration[2] if len(declaration) == 3 else ParameterDescriptor()
        if not isinstance(descriptor, ParameterDescriptor):
            raise TypeError(
                f'Third element {descriptor} at index {index} in parameters list is not a '
                'ParameterDescriptor.')
        if len(declaration) == 1:
            warnings.warn(
                f"parameter '{name}' is declared only by its name, which is deprecated; pass a "
                'default value, a Parameter.Type, or a descriptor with dynamic_typing=True',
                stacklevel=4)
            descriptor.dynamic_typing = True
        value = declaration[1] if len(declaration) > 1 else None
        descriptor.name = name
        if isinstance(value, Parameter.Type):
            if value is Parameter.Type.NOT_SET:
                raise ValueError(
                    f'Cannot declare parameter {name!r} as statically typed of type NOT_SET')
            if descriptor.dynamic_typing:
                raise ValueError(
                    f'parameter {name!r} is declared with a type and dynamic_typing=True; '
                    'leave one out')
            descriptor.type = value.value
            return Parameter(name), descriptor
        if isinstance(value, ParameterValue):
            value = parameter_value_to_python(value)
        parameter = Parameter(name, value=value)
        descriptor.type = parameter.type_.value
        if value is None and not descriptor.dynamic_typing:
            raise ValueError(
                f'parameter {name!r} is statically typed and has no default value; pass a '
                'value, a Parameter.Type, or a descriptor with dynamic_typing=True')
        return parameter, descriptor

    def undeclare_parameter(self, name: str) -> None:
        """
        Remove a parameter.

        :raises ParameterNotDeclaredException: if it is not declared.
        :raises ParameterImmutableException: if it is read-only.
        """
        self._parameter_store.undeclare(name)

    def has_parameter(self, name: str) -> bool:
        """Return whether a parameter is declared."""
        return self._parameter_store.has(name)

    # --- reading

    def get_parameter_types(self, names: List[str]) -> List[Parameter.Type]:
        """Return the types of parameters; see :meth:`get_parameter_type`."""
        return [self.get_parameter_type(name) for name in _checked(names)]

    def get_parameter_type(self, name: str) -> Parameter.Type:
        """
        Return the number of a parameter's type; :class:`Parameter.Type` names it.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        """
        number = self._parameter_store.type_of(name)
        # As in rclpy, which returns a member only for an undeclared parameter.
        return number if self.has_parameter(name) else Parameter.Type.NOT_SET

    def get_parameters(self, names: List[str]) -> List[Parameter]:
        """Return parameters; see :meth:`get_parameter`."""
        return [self.get_parameter(name) for name in _checked(names)]

    def get_parameter(self, name: str) -> Parameter:
        """
        Return a parameter.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        :raises ParameterUninitializedException: if it has a type but no value yet.
        """
        return self._parameter_store.get(name)

    def get_parameter_or(
        self, name: str, alternative_value: Optional[Parameter] = None,
    ) -> Parameter:
        """Return a parameter, or another one if it is not declared or has no value."""
        parameter = self._parameter_store.get_if_set(name) or alternative_value
        return Parameter(name, Parameter.Type.NOT_SET) if parameter is None else parameter

    def get_parameters_by_prefix(self, prefix: str) -> Dict[str, Parameter]:
        """Return the parameters below a prefix, by the rest of their names."""
        if prefix:
            prefix += PARAMETER_SEPARATOR_STRING
        found = self._parameter_store.with_prefix(prefix)
        return {parameter.name[len(prefix):]: parameter for parameter in found}

    def list_parameters(self, prefixes: List[str], depth: int) -> ListParametersResult:
        """
        Return the names of parameters and of their prefixes.

        :param prefixes: Only names below one of them; an empty list stands for all names.
        :param depth: Longest name in parts below the prefix; 0 stands for no limit.
        """
        if not isinstance(prefixes, list):
            raise TypeError('The prefixes argument must be a list')
        if not all(isinstance(prefix, str) for prefix in prefixes):
            raise TypeError('All prefixes must be instances of type str')
        if not isinstance(depth, int):
            raise TypeError('The depth must be instance of type int')
        if depth < 0:
            raise ValueError('The depth must be greater than or equal to zero')
        return self._parameter_store.list(prefixes, depth)

    # --- setting

    def set_parameters(self, parameter_list: List[Parameter]) -> List[SetParametersResult]:
        """
        Set parameters one after the other.

        A parameter of type NOT_SET is undeclared, if it is dynamically typed.

        :returns: a result for each.
        :raises ParameterNotDeclaredException: if one is not declared, and must be.
        """
        return [self._parameter_store.set_atomically(self, [each]) for each in parameter_list]

    def set_parameters_atomically(self, parameter_list: List[Parameter]) -> SetParametersResult:
        """
        Set all of some parameters, or none.

        :raises ParameterNotDeclaredException: if one is not declared, and must be.
        """
        return self._parameter_store.set_atomically(self, parameter_list)

    def add_pre_set_parameters_callback(self, callback: PreSetCallback) -> None:
        """Add a callback that may change the list of parameters before it is checked."""
        self._pre_set_parameters_callbacks.insert(0, _callable(callback))

    def add_on_set_parameters_callback(self, callback: OnSetCallback) -> None:
        """Add a callback that accepts or rejects values; it must not have other effects."""
        self._on_set_parameters_callbacks.insert(0, _callable(callback))

    def add_post_set_parameters_callback(self, callback: PostSetCallback) -> None:
        """Add a callback that is called after parameters were set."""
        self._post_set_parameters_callbacks.insert(0, _callable(callback))

    def remove_pre_set_parameters_callback(self, callback: PreSetCallback) -> None:
        """Remove a callback; ``ValueError`` if it was not added."""
        self._pre_set_parameters_callbacks.remove(callback)

    def remove_on_set_parameters_callback(self, callback: OnSetCallback) -> None:
        """Remove a callback; ``ValueError`` if it was not added."""
        self._on_set_parameters_callbacks.remove(callback)

    def remove_post_set_parameters_callback(self, callback: PostSetCallback) -> None:
        """Remove a callback; ``ValueError`` if it was not added."""
        self._post_set_parameters_callbacks.remove(callback)

    # --- descriptors

    def describe_parameter(self, name: str) -> ParameterDescriptor:
        """
        Return the descriptor of a parameter.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        """
        return self._parameter_store.describe(name)

    def describe_parameters(self, names: List[str]) -> List[ParameterDescriptor]:
        """Return the descriptors of parameters; see :meth:`describe_parameter`."""
        return [self.describe_parameter(name) for name in names]

    def set_descriptor(
        self, name: str, descriptor: ParameterDescriptor,
        alternative_value: Optional[ParameterValue] = None,
    ) -> ParameterValue:
        """
        Replace the descriptor of a parameter.

        :param alternative_value: The value to set if the new descriptor rejects the present one.
        :returns: the value after the call.
        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        :raises ParameterImmutableException: if it is read-only.
        :raises InvalidParameterValueException: if the new descriptor rejects both values.
        """
        alternative = None
        if alternative_value is not None:
            alternative = Parameter(name, value=parameter_value_to_python(alternative_value))
        return self._parameter_store.set_descriptor(
            name, descriptor, alternative).get_parameter_value()


def _callable(callback: Any) -> Any:
    if not callable(callback):
        raise TypeError(f'Callback must be callable, got {type(callback)}')
    return callback


def _checked(names: List[str]) -> List[str]:
    if not all(isinstance(name, str) for name in names):
        raise TypeError('All names must be instances of type str')
    return names
