"""Conditions: they decide whether an action is carried out."""

from launch.conditions.evaluate_condition_expression_impl import evaluate_condition_expression
from launch.conditions.if_condition import IfCondition
from launch.conditions.invalid_condition_expression_error import InvalidConditionExpressionError
from launch.conditions.launch_configuration_equals import LaunchConfigurationEquals
from launch.conditions.launch_configuration_not_equals import LaunchConfigurationNotEquals
from launch.conditions.of_entity import conditions_of_entity
from launch.conditions.unless_condition import UnlessCondition

__all__ = [
    'IfCondition', 'InvalidConditionExpressionError', 'LaunchConfigurationEquals',
    'LaunchConfigurationNotEquals', 'UnlessCondition', 'conditions_of_entity',
    'evaluate_condition_expression',
]
