"""Substitutions: packages, their programs, and parameters."""

from launch_ros.substitutions.executable_in_package import ExecutableInPackage
from launch_ros.substitutions.find_package import (
    FindPackage, FindPackagePrefix, FindPackageShare,
)
from launch_ros.substitutions.parameter import Parameter

__all__ = [
    'ExecutableInPackage', 'FindPackage', 'FindPackagePrefix', 'FindPackageShare', 'Parameter']
