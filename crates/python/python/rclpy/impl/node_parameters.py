"""The parameters of a node: declarations, descriptors, callbacks and events."""

from __future__ import annotations

import math
import warnings

from rcl_interfaces.msg import (
    ListParametersResult, ParameterDescriptor, ParameterEvent, ParameterValue, SetParametersResult,
)
from rclpy.exceptions import (
    InvalidParameterTypeException, InvalidParameterValueException,
    ParameterAlreadyDeclaredException, ParameterImmutableException,
    ParameterNotDeclaredException, ParameterUninitializedException,
)
from rclpy.parameter import PARAMETER_SEPARATOR_STRING, Parameter
from rclpy.validate_parameter_name import validate_parameter_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    PreSetCallback = Callable[[List[Parameter]], List[Parameter]]
    OnSetCallback = Callable[[List[Parameter]], SetParametersResult]
    PostSetCallback = Callable[[List[Parameter]], None]

_DEPTH_RECURSIVE = 0


def _accepted() -> SetParametersResult:
    return SetParametersResult(successful=True)


def _rejected(reason: str) -> SetParametersResult:
    return SetParametersResult(successful=False, reason=reason)


class NodeParameters:
    """The part of a node that has parameters."""

    PARAM_REL_TOL = 1e-6
    """Relative tolerance of the limits and steps of floating point ranges."""

    _clock: Any
    _parameter_event_publisher: Any
    _override_as: Callable[[str, int], Any]

    def _init_parameters(self, allow_undeclared_parameters: bool) -> None:
        self._parameters: Dict[str, Parameter] = {}
        self._descriptors: Dict[str, ParameterDescriptor] = {}
        self._parameter_overrides: Dict[str, Parameter] = {}
        # Those that are text of a file or of the command line.
        self._text_overrides: Set[str] = set()
        self._allow_undeclared_parameters = allow_undeclared_parameters
        self._pre_set_parameters_callbacks: List[PreSetCallback] = []
        self._on_set_parameters_callbacks: List[OnSetCallback] = []
        self._post_set_parameters_callbacks: List[PostSetCallback] = []

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
        declared = []
        descriptors: Dict[str, ParameterDescriptor] = {}
        for index, declaration in enumerate(parameters):
            parameter, descriptor = self._parse_declaration(
                index, namespace, declaration, ignore_override)
            declared.append(parameter)
            descriptors[parameter.name] = descriptor
        existing = [each.name for each in declared if each.name in self._parameters]
        if existing:
            raise ParameterAlreadyDeclaredException(existing)
        self._declare_parameter_common(declared, descriptors)
        return [self._parameters[parameter.name] for parameter in declared]

    def _parse_declaration(
        self, index: int, namespace: str, declaration: Tuple, ignore_override: bool,
    ) -> Tuple[Parameter, ParameterDescriptor]:
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
        if isinstance(value, Parameter.Type):
            if value is Parameter.Type.NOT_SET:
                raise ValueError(
                    f'Cannot declare parameter {name!r} as statically typed of type NOT_SET')
            if descriptor.dynamic_typing:
                raise ValueError(
                    f'parameter {name!r} is declared with a type and dynamic_typing=True; '
                    'leave one out')
            descriptor.type = value.value
            value = None
        elif not descriptor.dynamic_typing:
            if isinstance(value, ParameterValue):
                descriptor.type = value.type
            else:
                descriptor.type = Parameter.Type.from_parameter_value(value).value
            if descriptor.type == Parameter.Type.NOT_SET.value:
                raise ValueError(
                    f'parameter {name!r} is statically typed and has no default value; pass a '
                    'value, a Parameter.Type, or a descriptor with dynamic_typing=True')
        if isinstance(value, ParameterValue):
            from rclpy.parameter import parameter_value_to_python
            value = parameter_value_to_python(value)
        if not ignore_override and name in self._parameter_overrides:
            value = self._override_value(name, descriptor)
        return Parameter(name, value=value), descriptor

    def _override_value(self, name: str, descriptor: ParameterDescriptor) -> Any:
        """Return an override; a declared type decides how its text is read."""
        override = self._parameter_overrides[name]
        declared, found = descriptor.type, override.type_.value
        strings = (Parameter.Type.STRING.value, Parameter.Type.STRING_ARRAY.value)
        # Between other types rclpy converts nothing, not even 1 to 1.0.
        if (descriptor.dynamic_typing or declared == found or name not in self._text_overrides
                or (declared not in strings and found not in strings)):
            return override.value
        return self._override_as(name, declared)

    def _declare_parameter_common(
        self, parameter_list: List[Parameter],
        descriptors: Optional[Dict[str, ParameterDescriptor]] = None,
    ) -> List[SetParametersResult]:
        results = []
        for parameter in parameter_list:
            result = self._set_parameters_atomically_common(
                [parameter], descriptors, allow_not_set_type=True)
            if not result.successful:
                if result.reason.startswith('Wrong parameter type') and descriptors is not None:
                    raise InvalidParameterTypeException(
                        parameter, Parameter.Type(descriptors[parameter.name].type))
                raise InvalidParameterValueException(
                    parameter.name, parameter.value, result.reason)
            results.append(result)
        return results

    def undeclare_parameter(self, name: str) -> None:
        """
        Remove a parameter.

        :raises ParameterNotDeclaredException: if it is not declared.
        :raises ParameterImmutableException: if it is read-only.
        """
        if not self.has_parameter(name):
            raise ParameterNotDeclaredException(name)
        if self._descriptors[name].read_only:
            raise ParameterImmutableException(name)
        del self._parameters[name]
        del self._descriptors[name]

    def has_parameter(self, name: str) -> bool:
        """Return whether a parameter is declared."""
        return name in self._parameters

    # --- reading

    def get_parameter_types(self, names: List[str]) -> List[Parameter.Type]:
        """Return the types of parameters; see :meth:`get_parameter_type`."""
        if not all(isinstance(name, str) for name in names):
            raise TypeError('All names must be instances of type str')
        return [self.get_parameter_type(name) for name in names]

    def get_parameter_type(self, name: str) -> Parameter.Type:
        """
        Return the number of a parameter's type; :class:`Parameter.Type` names it.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        """
        if self.has_parameter(name):
            return self._parameters[name].type_.value  # type: ignore[return-value]
        if self._allow_undeclared_parameters:
            return Parameter.Type.NOT_SET
        raise ParameterNotDeclaredException(name)

    def get_parameters(self, names: List[str]) -> List[Parameter]:
        """Return parameters; see :meth:`get_parameter`."""
        if not all(isinstance(name, str) for name in names):
            raise TypeError('All names must be instances of type str')
        return [self.get_parameter(name) for name in names]

    def get_parameter(self, name: str) -> Parameter:
        """
        Return a parameter.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        :raises ParameterUninitializedException: if it has a type but no value yet.
        """
        parameter = self._parameters.get(name)
        if parameter is not None:
            if (parameter.type_ is Parameter.Type.NOT_SET
                    and not self._descriptors[name].dynamic_typing):
                raise ParameterUninitializedException(name)
            return parameter
        if self._allow_undeclared_parameters:
            return Parameter(name, Parameter.Type.NOT_SET, None)
        raise ParameterNotDeclaredException(name)

    def get_parameter_or(
        self, name: str, alternative_value: Optional[Parameter] = None,
    ) -> Parameter:
        """Return a parameter, or another one if it is not declared or has no value."""
        parameter = self._parameters.get(name)
        if parameter is not None and parameter.type_ is not Parameter.Type.NOT_SET:
            return parameter
        if alternative_value is None:
            return Parameter(name, Parameter.Type.NOT_SET)
        return alternative_value

    def get_parameters_by_prefix(self, prefix: str) -> Dict[str, Parameter]:
        """Return the parameters below a prefix, by the rest of their names."""
        if prefix:
            prefix += PARAMETER_SEPARATOR_STRING
        return {
            name[len(prefix):]: parameter for name, parameter in self._parameters.items()
            if name.startswith(prefix)}

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

        def within_depth(text: str) -> bool:
            return text.count(PARAMETER_SEPARATOR_STRING) < depth

        def is_below(name: str, prefix: str) -> bool:
            if name == prefix:
                return True
            start = prefix + PARAMETER_SEPARATOR_STRING
            return name.startswith(start) and (
                depth == _DEPTH_RECURSIVE or within_depth(name[len(start):]))

        names = []
        found_prefixes: Dict[str, None] = {}
        for name in self._parameters:
            if prefixes:
                if not any(is_below(name, prefix) for prefix in prefixes):
                    continue
            elif depth != _DEPTH_RECURSIVE and not within_depth(name):
                continue
            names.append(name)
            prefix, separator, _ = name.rpartition(PARAMETER_SEPARATOR_STRING)
            if separator:
                found_prefixes[prefix] = None
        return ListParametersResult(names=names, prefixes=list(found_prefixes))

    # --- setting

    def set_parameters(self, parameter_list: List[Parameter]) -> List[SetParametersResult]:
        """
        Set parameters one after the other.

        A parameter of type NOT_SET is undeclared, if it is dynamically typed.

        :returns: a result for each.
        :raises ParameterNotDeclaredException: if one is not declared, and must be.
        """
        return [self._set_parameters_atomically([parameter]) for parameter in parameter_list]

    def set_parameters_atomically(self, parameter_list: List[Parameter]) -> SetParametersResult:
        """
        Set all of some parameters, or none.

        :raises ParameterNotDeclaredException: if one is not declared, and must be.
        """
        return self._set_parameters_atomically(parameter_list)

    def _set_parameters_atomically(self, parameter_list: List[Parameter]) -> SetParametersResult:
        if self._pre_set_parameters_callbacks:
            changed: List[Parameter] = []
            for callback in self._pre_set_parameters_callbacks:
                changed.extend(callback(parameter_list))
            parameter_list = changed
            if not parameter_list:
                return _rejected(
                    'parameter list cannot be empty, this might be due to '
                    'pre_set_parameters_callback modifying the original parameters list.')
        self._check_undeclared_parameters(parameter_list)
        return self._set_parameters_atomically_common(parameter_list)

    def _check_undeclared_parameters(self, parameter_list: List[Parameter]) -> None:
        if not all(isinstance(parameter, Parameter) for parameter in parameter_list):
            raise TypeError(f"parameter must be instance of type '{Parameter!r}'")
        if self._allow_undeclared_parameters:
            return
        undeclared = [each.name for each in parameter_list if each.name not in self._parameters]
        if undeclared:
            raise ParameterNotDeclaredException(undeclared)

    def _set_parameters_atomically_common(
        self, parameter_list: List[Parameter],
        descriptors: Optional[Dict[str, ParameterDescriptor]] = None,
        allow_not_set_type: bool = False,
    ) -> SetParametersResult:
        result = self._apply_descriptors(
            parameter_list, self._descriptors if descriptors is None else descriptors,
            check_read_only=descriptors is None)
        if not result.successful:
            return result
        for callback in list(self._on_set_parameters_callbacks):
            result = callback(parameter_list)
            if not result.successful:
                return result
        event = ParameterEvent(node=self.get_fully_qualified_name())  # type: ignore[attr-defined]
        new, changed, deleted = [], [], []
        for parameter in parameter_list:
            name = parameter.name
            if parameter.type_ is Parameter.Type.NOT_SET and not allow_not_set_type:
                deleted.append(parameter.to_parameter_msg())
                self._parameters.pop(name, None)
                self._descriptors.pop(name, None)
                continue
            if descriptors is not None:
                self._descriptors[name] = descriptors[name]
            elif name not in self._descriptors:
                self._descriptors[name] = ParameterDescriptor(dynamic_typing=True)
            is_new = self.get_parameter_or(name).type_ is Parameter.Type.NOT_SET
            (new if is_new else changed).append(parameter.to_parameter_msg())
            self._parameters[name] = parameter
        event.new_parameters = new
        event.changed_parameters = changed
        event.deleted_parameters = deleted
        event.stamp = self._clock.now().to_msg()
        self._parameter_event_publisher.publish(event)
        for post_callback in list(self._post_set_parameters_callbacks):
            post_callback(parameter_list)
        return _accepted()

    def add_pre_set_parameters_callback(self, callback: PreSetCallback) -> None:
        """Add a callback that may change the list of parameters before it is checked."""
        self._pre_set_parameters_callbacks.insert(0, callback)

    def add_on_set_parameters_callback(self, callback: OnSetCallback) -> None:
        """Add a callback that accepts or rejects values; it must not have other effects."""
        self._on_set_parameters_callbacks.insert(0, callback)

    def add_post_set_parameters_callback(self, callback: PostSetCallback) -> None:
        """Add a callback that is called after parameters were set."""
        self._post_set_parameters_callbacks.insert(0, callback)

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

    def _apply_descriptors(
        self, parameter_list: List[Parameter], descriptors: Dict[str, ParameterDescriptor],
        check_read_only: bool = True,
    ) -> SetParametersResult:
        for parameter in parameter_list:
            descriptor = descriptors.get(parameter.name)
            if descriptor is not None:
                result = self._apply_descriptor(parameter, descriptor, check_read_only)
                if not result.successful:
                    return result
        return _accepted()

    def _apply_descriptor(
        self, parameter: Parameter, descriptor: Optional[ParameterDescriptor] = None,
        check_read_only: bool = True,
    ) -> SetParametersResult:
        name = parameter.name
        if descriptor is None:
            descriptor = self.describe_parameter(name)
        else:
            descriptor.name = name
        if check_read_only and descriptor.read_only:
            return _rejected(f'Trying to set a read-only parameter: {name}.')
        is_set = parameter.type_ is not Parameter.Type.NOT_SET
        if descriptor.dynamic_typing:
            descriptor.type = parameter.type_.value
        elif not is_set:
            if self.has_parameter(name):
                return _rejected('Static parameter cannot be undeclared')
        elif parameter.type_.value != descriptor.type:
            return _rejected(
                f"Wrong parameter type, expected '{Parameter.Type(descriptor.type)}' got "
                f"'{parameter.type_}'")
        if parameter.type_ is Parameter.Type.INTEGER and descriptor.integer_range:
            return self._apply_integer_range(parameter, descriptor.integer_range[0])
        if parameter.type_ is Parameter.Type.DOUBLE and descriptor.floating_point_range:
            return self._apply_floating_point_range(
                parameter, descriptor.floating_point_range[0])
        return _accepted()

    def _apply_integer_range(self, parameter: Parameter, limits: Any) -> SetParametersResult:
        low, high = sorted((limits.from_value, limits.to_value))
        value = parameter.value
        if value in (low, high):
            return _accepted()
        text = f'Min: {low}, Max: {high}, value: {value}'
        if not low < value < high:
            return _rejected(f'Parameter {parameter.name} out of range. {text}')
        if limits.step != 0 and (value - low) % limits.step != 0:
            return _rejected(
                f'The parameter value for {parameter.name} is not a valid step. Min: {low}, '
                f'max: {high}, value: {value}, step: {limits.step}')
        return _accepted()

    def _apply_floating_point_range(
        self, parameter: Parameter, limits: Any,
    ) -> SetParametersResult:
        low, high = sorted((limits.from_value, limits.to_value))
        value = parameter.value

        def is_close(left: float, right: float) -> bool:
            return math.isclose(left, right, rel_tol=self.PARAM_REL_TOL)

        if is_close(value, low) or is_close(value, high):
            return _accepted()
        text = f'Min: {low}, Max: {high}, value: {value}'
        if not low < value < high:
            return _rejected(f'Parameter {parameter.name} out of range {text}')
        if limits.step != 0.0:
            steps = round((value - low) / limits.step)
            if not is_close(low + steps * limits.step, value):
                return _rejected(
                    f'The parameter value for {parameter.name} is not close enough to a valid '
                    f'step. Min: {low}, max: {high}, value: {value}, step: {limits.step}')
        return _accepted()

    def describe_parameter(self, name: str) -> ParameterDescriptor:
        """
        Return the descriptor of a parameter.

        :raises ParameterNotDeclaredException: if it is not declared, and must be.
        """
        descriptor = self._descriptors.get(name)
        if descriptor is not None:
            return descriptor
        if self._allow_undeclared_parameters:
            return ParameterDescriptor()
        raise ParameterNotDeclaredException(name)

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
        if not self.has_parameter(name):
            if not self._allow_undeclared_parameters:
                raise ParameterNotDeclaredException(name)
            return self.get_parameter(name).get_parameter_value()
        if self.describe_parameter(name).read_only:
            raise ParameterImmutableException(name)
        parameter = self.get_parameter(name)
        result = self._apply_descriptor(parameter, descriptor, False)
        if not result.successful:
            if alternative_value is not None:
                from rcl_interfaces.msg import Parameter as ParameterMsg
                parameter = Parameter.from_parameter_msg(
                    ParameterMsg(name=name, value=alternative_value))
            result = self._apply_descriptor(parameter, descriptor, False)
            if not result.successful:
                raise InvalidParameterValueException(name, parameter.value, result.reason)
        self._parameters[name] = parameter
        self._descriptors[name] = descriptor
        return self.get_parameter(name).get_parameter_value()
