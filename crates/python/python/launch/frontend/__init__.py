"""Frontends: launch files in XML, YAML and other formats."""

from launch.frontend import type_utils
from launch.frontend.entity import Entity
from launch.frontend.expose import expose_action, expose_substitution
from launch.frontend.parser import InvalidFrontendLaunchFileError, Parser

__all__ = [
    'Entity', 'InvalidFrontendLaunchFileError', 'Parser', 'expose_action',
    'expose_substitution', 'type_utils',
]
