"""Action: do something later."""

from __future__ import annotations

import asyncio
import collections.abc
import warnings

import launch.logging
from launch.action import Action
from launch.actions.opaque_function import UninterruptedFunction
from launch.event_handler import EventHandler
from launch.event_handlers import OnShutdown
from launch.events import TimerEvent
from launch.frontend.expose import expose_action
from launch.some_substitutions_type import SomeSubstitutionsType_types_tuple
from launch.utilities import ensure_argument_type, is_a_subclass
from launch.utilities.type_utils import (
    normalize_typed_substitution, perform_typed_substitution,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Text, Tuple, Type, Union

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType


def _handle_timer_event(context: LaunchContext) -> Any:
    return context.locals.event.timer_action.handle(context)


@expose_action('timer')
class TimerAction(Action):
    """Visits actions after a period in seconds."""

    CLOCK = ''
    """What the period is of, for people."""

    def __init__(
        self,
        *,
        period: Union[float, SomeSubstitutionsType],
        actions: Iterable[LaunchDescriptionEntity],
        cancel_on_shutdown: Union[bool, SomeSubstitutionsType] = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        caller = type(self).__name__
        ensure_argument_type(
            period, [*SomeSubstitutionsType_types_tuple, int, float], 'period', caller)
        ensure_argument_type(actions, collections.abc.Iterable, 'actions', caller)
        if isinstance(period, str):
            warnings.warn(
                "The parameter 'period' must be a float or substitution, passing a string "
                'literal was deprecated', stacklevel=2)
            period = float(period)
        elif isinstance(period, int):
            period = float(period)
        self.__period = normalize_typed_substitution(period, float)
        self.__actions = actions
        self.__cancel_on_shutdown = normalize_typed_substitution(cancel_on_shutdown, bool)
        self.__context_locals: Dict[Text, Any] = {}
        self.__canceled = False
        self._completed_future: Optional[asyncio.Future] = None
        self._canceled_future: Optional[asyncio.Future] = None
        self.__logger = launch.logging.get_logger('launch.actions.timer_action')

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[TimerAction], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser)
        kwargs['period'] = parser.parse_if_substitutions(
            entity.get_attr('period', data_type=float, can_be_str=True))
        kwargs['actions'] = [parser.parse_action(child) for child in entity.children]
        cancel = entity.get_attr(
            'cancel_on_shutdown', optional=True, data_type=bool, can_be_str=True)
        if cancel is not None:
            kwargs['cancel_on_shutdown'] = parser.parse_if_substitutions(cancel)
        return cls, kwargs

    @property
    def period(self) -> Any:
        """The period in seconds."""
        return self.__period

    @property
    def actions(self) -> Iterable[LaunchDescriptionEntity]:
        """The actions."""
        return self.__actions

    def describe(self) -> Text:
        """Return a text for people."""
        return f'{type(self).__name__}(period={self.__period}, actions=<actions>)'

    def describe_conditional_sub_entities(
        self,
    ) -> List[Tuple[Text, Iterable[LaunchDescriptionEntity]]]:
        """Return the actions."""
        return [(f'{self.__period} seconds pass without being canceled', self.__actions)]

    def handle(self, context: LaunchContext) -> Optional[Iterable[LaunchDescriptionEntity]]:
        """Return the actions, when the period has passed."""
        context.extend_locals(self.__context_locals)
        return self.__actions

    def cancel(self) -> None:
        """End the timer without its actions."""
        self.__canceled = True
        if self._canceled_future is not None and not self._canceled_future.done():
            self._canceled_future.set_result(True)

    def _perform_period(self, context: LaunchContext) -> float:
        return perform_typed_substitution(context, self.__period, float)

    async def _wait_to_fire_event(self, context: LaunchContext) -> None:
        """Wait for the period or the end; subclasses wait for other clocks."""
        await asyncio.wait([self._canceled_future], timeout=self._perform_period(context))
        await self._finish(context)

    async def _finish(self, context: LaunchContext) -> None:
        if not self._canceled_future.done():
            await context.emit_event(TimerEvent(timer_action=self))
        self._completed_future.set_result(None)

    def __handle_end(self, task: asyncio.Task) -> None:
        """Pass an error on to the launch."""
        if not self._completed_future.done():
            if task.cancelled() or task.exception() is None:
                self._completed_future.set_result(None)
            else:
                self._completed_future.set_exception(task.exception())

    def execute(self, context: LaunchContext) -> None:
        """Start the timer."""
        self.__context_locals = dict(context.get_locals_as_dict())
        if context.plan is not None:
            seconds = self._perform_period(context)
            step = context.plan.add(
                'timer', f'after {seconds:g} s{self.CLOCK}', period_s=seconds)
            context.plan.add_later(step, self.__actions, self.__context_locals)
            return
        self._completed_future = context.asyncio_loop.create_future()
        self._canceled_future = context.asyncio_loop.create_future()
        if self.__canceled:
            self.__logger.debug(
                f'timer {self} not waiting because it was canceled before being executed')
            self._completed_future.set_result(None)
            return
        if not context._has_timer_handler:
            context._has_timer_handler = True
            context.register_event_handler(EventHandler(
                matcher=lambda event: is_a_subclass(event, TimerEvent),
                entities=UninterruptedFunction(function=_handle_timer_event)))
        task = context.asyncio_loop.create_task(self._wait_to_fire_event(context))
        task.add_done_callback(self.__handle_end)
        if perform_typed_substitution(context, self.__cancel_on_shutdown, bool):
            context.register_event_handler(
                OnShutdown(on_shutdown=lambda event, context: self.cancel()))

    def get_asyncio_future(self) -> Optional[asyncio.Future]:
        """Return a future that is done when the timer has expired or ended."""
        return self._completed_future
