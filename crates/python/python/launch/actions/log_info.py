"""Actions: log a message."""

from __future__ import annotations

import logging

import launch.logging
from launch.action import Action
from launch.frontend.expose import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution


class _LogAction(Action):
    """Base of the actions that log a message."""

    _TEXTS = {'msg': 'message'}

    LEVEL = logging.INFO

    def __init__(self, *, msg: SomeSubstitutionsType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__msg = normalize_to_list_of_substitutions(msg)
        self.__logger = launch.logging.get_logger('launch.user')

    @property
    def msg(self) -> List[Substitution]:
        """The message."""
        return self.__msg

    def execute(self, context: LaunchContext) -> None:
        """Log the message."""
        text = perform_substitutions(context, self.__msg)
        if context.plan is None:
            self.__logger.log(self.LEVEL, text)
            return
        level = logging.getLevelName(self.LEVEL)
        label = '' if self.LEVEL == logging.INFO else f' ({level})'
        context.plan.add('log', f'log{label}: {text}', level=level, message=text)


@expose_action('log')
@expose_action('log_info')
class LogInfo(_LogAction):
    """Logs a message."""


@expose_action('log_debug')
class LogDebug(_LogAction):
    """Logs a message for debugging, as later releases have it."""

    LEVEL = logging.DEBUG


@expose_action('log_warning')
class LogWarning(_LogAction):
    """Logs a warning, as later releases have it."""

    LEVEL = logging.WARNING


@expose_action('log_error')
class LogError(_LogAction):
    """Logs an error, as later releases have it."""

    LEVEL = logging.ERROR
