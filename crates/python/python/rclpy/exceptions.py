"""The exceptions that rclpy raises."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.impl.errors import InvalidHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from rclpy.parameter import Parameter
else:
    __getattr__ = getter_of(__name__)

__all__ = [
    'InvalidHandle', 'InvalidNamespaceException', 'InvalidNodeNameException',
    'InvalidParameterException', 'InvalidParameterTypeException',
    'InvalidParameterValueException', 'InvalidServiceNameException',
    'InvalidTopicNameException', 'NameValidationException', 'NoTypeSupportImportedException', 'NotInitializedException',
    'ParameterAlreadyDeclaredException', 'ParameterException', 'ParameterImmutableException',
    'ParameterNotDeclaredException', 'ParameterUninitializedException', 'ROSInterruptException',
]


class NotInitializedException(Exception):
    """The context is not initialized, or was shut down."""

    def __init__(self, message: Optional[str] = None) -> None:
        super().__init__(
            f'rclpy.init() has not been called. msg:{message}' if message
            else 'rclpy.init() has not been called.')


class NoTypeSupportImportedException(Exception):
    """The type support of an interface cannot be imported."""

    def __init__(self) -> None:
        super().__init__('no type support imported')


class NameValidationException(Exception):
    """A name breaks the rules of its kind."""

    def __init__(self, name_type: str, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__(
            f"Invalid {name_type}: {error_msg}:\n  '{name}'\n   {' ' * invalid_index}^")
        self.name_type = name_type
        self.name = name
        self.error_msg = error_msg
        self.invalid_index = invalid_index


class InvalidNamespaceException(NameValidationException):
    """A node namespace is invalid."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__('namespace', name, error_msg, invalid_index)


class InvalidNodeNameException(NameValidationException):
    """A node name is invalid."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__('node name', name, error_msg, invalid_index)


class InvalidTopicNameException(NameValidationException):
    """A topic name is invalid."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__('topic name', name, error_msg, invalid_index)


class InvalidServiceNameException(NameValidationException):
    """A service name is invalid."""

    def __init__(self, name: str, error_msg: str, invalid_index: int) -> None:
        super().__init__('service name', name, error_msg, invalid_index)


class ParameterException(Exception):
    """Base of the parameter exceptions; ``parameters`` names the parameters."""

    def __init__(self, error_msg: str, parameters: Union[str, List[str]]) -> None:
        super().__init__(f'{error_msg}: {parameters}')
        self.parameters = parameters


class ParameterNotDeclaredException(ParameterException):
    """A parameter is used that was not declared."""

    def __init__(self, parameters: Union[str, List[str]]) -> None:
        super().__init__('Invalid access to undeclared parameter(s)', parameters)


class ParameterAlreadyDeclaredException(ParameterException):
    """A parameter is declared twice."""

    def __init__(self, parameters: Union[str, List[str]]) -> None:
        super().__init__('Parameter(s) already declared', parameters)


class InvalidParameterException(ParameterException):
    """A parameter name is invalid."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__('Invalid parameter name', parameter_name)


class InvalidParameterTypeException(ParameterException):
    """A value has another type than the parameter was declared with."""

    def __init__(
        self, desired_parameter: Parameter, expected_type: Union[str, Parameter.Type],
    ) -> None:
        expected = getattr(expected_type, 'name', expected_type)
        super().__init__(
            f"Trying to set parameter '{desired_parameter.name}' to "
            f"'{desired_parameter.value}' of type '{desired_parameter.type_.name}', "
            f"expecting type '{expected}'", desired_parameter.name)


class InvalidParameterValueException(ParameterException):
    """A value was rejected."""

    def __init__(self, parameter: str, value: object, reason: str) -> None:
        super().__init__(
            'Invalid parameter value ({value}) for parameter. Reason: {reason}'.format(
                value=value, reason=reason), parameter)


class ParameterUninitializedException(ParameterException):
    """A statically typed parameter without a value is read."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__(f"The parameter '{parameter_name}' is not initialized", parameter_name)


class ParameterImmutableException(ParameterException):
    """A read-only parameter is undeclared."""

    def __init__(self, parameter_name: str) -> None:
        super().__init__('Attempted to modify read-only parameter', parameter_name)


class TimerCancelledError(Exception):
    """A timer is cancelled. Later releases raise it."""


class ROSInterruptException(Exception):
    """A sleep was interrupted by the shutdown of the context."""

    def __init__(self) -> None:
        super().__init__('rclpy.shutdown() has been called')


class TimeSourceChangedError(Exception):
    """ROS time was activated or deactivated during a sleep of an asynchronous node's clock."""

    def __init__(self) -> None:
        super().__init__('ROS time was activated or deactivated during the sleep')
