"""Base of the handlers for events of an action."""

from __future__ import annotations

import collections.abc

from launch.event import Event
from launch.event_handler import BaseEventHandler
from launch.launch_description_entity import LaunchDescriptionEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple, Type, Union

    from launch.action import Action
    from launch.launch_context import LaunchContext
    from launch.some_entities_type import SomeEntitiesType


def _entities(on_event: Any) -> List[LaunchDescriptionEntity]:
    if not isinstance(on_event, collections.abc.Iterable):
        on_event = [on_event]
    entities = list(on_event)
    for entity in entities:
        if not isinstance(entity, LaunchDescriptionEntity):
            raise TypeError(
                "expected all items in 'on_event' iterable to be of type "
                f"'LaunchDescriptionEntity' but got '{type(entity)}'")
    return entities


class OnActionEventBase(BaseEventHandler):
    """Handles the events of a class that are of one action, of some actions, or of all."""

    def __init__(
        self,
        *,
        action_matcher: Optional[Union[Callable[[Action], bool], Action]],
        on_event: Union[
            SomeEntitiesType, Callable[[Event, LaunchContext], Optional[SomeEntitiesType]]],
        target_event_cls: Type[Event],
        target_action_cls: Type[Action],
        **kwargs: Any,
    ) -> None:
        """
        Make a handler.

        :param action_matcher: The action, or a function that says whether it is one;
            ``None`` for all actions.
        :param on_event: Entities to visit, or a function that returns them.
        :raises TypeError: if an argument has another type.
        """
        if not issubclass(target_event_cls, Event):
            raise TypeError("'target_event_cls' must be a subclass of 'Event'")
        if not isinstance(action_matcher, (target_action_cls, type(None))) and not callable(
                action_matcher):
            raise TypeError(
                f'action_matcher must be an \'{target_action_cls.__name__}\' instance or a '
                'callable')
        self.__action_matcher = action_matcher
        self.__target_event_cls = target_event_cls
        self.__target_action_cls = target_action_cls
        super().__init__(matcher=self.__matches_event, **kwargs)
        self.__function = on_event if callable(on_event) else None
        self.__entities = [] if callable(on_event) else _entities(on_event)

    def __matches_event(self, event: Event) -> bool:
        if not isinstance(event, self.__target_event_cls):
            return False
        if self.__action_matcher is None:
            return True
        if callable(self.__action_matcher):
            return self.__action_matcher(event.action)
        return event.action is self.__action_matcher

    @property
    def target_action(self) -> Optional[Union[Callable[[Action], bool], Action]]:
        """The action, or the function that says whether it is one."""
        return self.__action_matcher

    def handle(self, event: Event, context: LaunchContext) -> Optional[SomeEntitiesType]:
        """Handle an event, and return the entities to visit."""
        super().handle(event, context)
        if self.__function is not None:
            return self.__function(event, context)
        return self.__entities

    def describe(self) -> Tuple[str, List[LaunchDescriptionEntity]]:
        """Return a text for people, and the entities that are known before the event."""
        text, known = super().describe()
        known.extend(self.__entities)
        return text, known

    @property
    def handler_description(self) -> str:
        """What the handler does, for people."""
        return '<actions>' if self.__function is None else str(self.__function)

    @property
    def matcher_description(self) -> str:
        """Which events match, for people."""
        text = f'event == {self.__target_event_cls.__name__}'
        if self.__action_matcher is None:
            return text
        return f'{text} and {self.__target_action_cls.__name__}(event.action)'
