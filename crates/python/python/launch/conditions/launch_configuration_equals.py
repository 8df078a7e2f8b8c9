"""Condition: a launch configuration has a value."""

from __future__ import annotations

import warnings

from launch.condition import Condition
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


class LaunchConfigurationEquals(Condition):
    """
    Holds if a launch configuration has a value; ``None`` if it does not exist.

    Deprecated: use :class:`IfCondition` on :class:`EqualsSubstitution`.
    """

    def __init__(
        self,
        launch_configuration_name: str,
        expected_value: Optional[SomeSubstitutionsType],
    ) -> None:
        warnings.warn(
            "The 'LaunchConfigurationEquals' and 'LaunchConfigurationNotEquals' Conditions are "
            "deprecated. Use the 'EqualsSubstitution' and 'NotEqualsSubstitution' substitutions "
            'instead: '
            "IfCondition(EqualsSubstitution(LaunchConfiguration('name'), 'value'))", UserWarning)
        self.__name = launch_configuration_name
        self.__expected_value = (
            None if expected_value is None
            else normalize_to_list_of_substitutions(expected_value))
        super().__init__(predicate=self._predicate_func)

    def _predicate_func(self, context: LaunchContext) -> bool:
        expected = None
        if self.__expected_value is not None:
            expected = perform_substitutions(context, self.__expected_value)
        return context.launch_configurations.get(self.__name) == expected
