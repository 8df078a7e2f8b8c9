"""Condition: a launch configuration does not have a value."""

from __future__ import annotations

from launch.conditions.launch_configuration_equals import LaunchConfigurationEquals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from launch.launch_context import LaunchContext


class LaunchConfigurationNotEquals(LaunchConfigurationEquals):
    """The opposite of :class:`LaunchConfigurationEquals`; deprecated as well."""

    def _predicate_func(self, context: LaunchContext) -> bool:
        return not super()._predicate_func(context)
