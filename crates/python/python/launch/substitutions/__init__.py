"""Substitutions: text that is known when the launch runs."""

from launch.substitutions.anon_name import AnonName
from launch.substitutions.boolean_substitution import (
    AllSubstitution, AndSubstitution, AnySubstitution, NotSubstitution, OrSubstitution,
)
from launch.substitutions.command import Command
from launch.substitutions.environment_variable import EnvironmentVariable
from launch.substitutions.equals_substitution import EqualsSubstitution
from launch.substitutions.file_content import FileContent
from launch.substitutions.find_executable import FindExecutable
from launch.substitutions.if_else_substitution import IfElseSubstitution
from launch.substitutions.launch_configuration import LaunchConfiguration
from launch.substitutions.launch_log_dir import LaunchLogDir
from launch.substitutions.local_substitution import LocalSubstitution
from launch.substitutions.not_equals_substitution import NotEqualsSubstitution
from launch.substitutions.path_join_substitution import PathJoinSubstitution, PathSubstitution
from launch.substitutions.python_expression import PythonExpression
from launch.substitutions.string_join_substitution import StringJoinSubstitution
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.substitutions.text_substitution import TextSubstitution
from launch.substitutions.this_launch_file import ThisLaunchFile
from launch.substitutions.this_launch_file_dir import ThisLaunchFileDir

__all__ = [
    'AllSubstitution', 'AndSubstitution', 'AnonName', 'AnySubstitution', 'Command',
    'EnvironmentVariable', 'EqualsSubstitution', 'FileContent', 'FindExecutable',
    'IfElseSubstitution', 'LaunchConfiguration', 'LaunchLogDir', 'LocalSubstitution',
    'NotEqualsSubstitution', 'NotSubstitution', 'OrSubstitution', 'PathJoinSubstitution',
    'PathSubstitution', 'PythonExpression', 'StringJoinSubstitution', 'SubstitutionFailure',
    'TextSubstitution', 'ThisLaunchFile', 'ThisLaunchFileDir',
]
