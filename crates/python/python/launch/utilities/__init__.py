"""Functions that actions and substitutions share."""

from launch.utilities.class_tools_impl import is_a, is_a_subclass, isclassinstance
from launch.utilities.ensure_argument_type_impl import ensure_argument_type
from launch.utilities.normalize_impl import (
    normalize_to_list_of_entities, normalize_to_list_of_substitutions,
)
from launch.utilities.perform_substitutions_impl import (
    describe_substitutions, perform_substitutions, split_words,
)
from launch.utilities.signal_management import AsyncSafeSignalManager
from launch.utilities.visit_impl import visit_all_entities_and_collect_futures

__all__ = [
    'AsyncSafeSignalManager', 'describe_substitutions', 'ensure_argument_type', 'is_a',
    'is_a_subclass', 'isclassinstance', 'normalize_to_list_of_entities',
    'normalize_to_list_of_substitutions', 'perform_substitutions', 'split_words',
    'visit_all_entities_and_collect_futures',
]
