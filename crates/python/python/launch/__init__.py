"""Launch: descriptions of a system of processes, and the service that executes them."""

from launch import actions, conditions, descriptions, events, frontend, logging, substitutions
from launch.action import Action
from launch.condition import Condition
from launch.event import Event
from launch.event_handler import EventHandler
from launch.invalid_launch_file_error import InvalidLaunchFileError
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_description_source import LaunchDescriptionSource
from launch.launch_introspector import LaunchIntrospector
from launch.launch_service import LaunchService
from launch.some_entities_type import SomeEntitiesType, SomeEntitiesType_types_tuple
from launch.some_substitutions_type import (
    SomeSubstitutionsType, SomeSubstitutionsType_types_tuple,
)
from launch.substitution import Substitution

__all__ = [
    'Action', 'Condition', 'Event', 'EventHandler', 'InvalidLaunchFileError', 'LaunchContext',
    'LaunchDescription', 'LaunchDescriptionEntity', 'LaunchDescriptionSource',
    'LaunchIntrospector', 'LaunchService', 'SomeEntitiesType', 'SomeEntitiesType_types_tuple',
    'SomeSubstitutionsType', 'SomeSubstitutionsType_types_tuple', 'Substitution', 'actions',
    'conditions', 'descriptions', 'events', 'frontend', 'logging', 'substitutions',
]
