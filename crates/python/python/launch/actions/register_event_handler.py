"""Action: register an event handler."""

from __future__ import annotations

import os

from launch.action import Action
from launch.utilities import normalize_to_list_of_entities, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List, Tuple

    from launch.event_handler import BaseEventHandler
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity


def target_text(target: Any, context: LaunchContext) -> str:
    """Return the name of an action, for people; of a process, also before it starts."""
    description = getattr(target, 'process_description', None)
    name = getattr(description, 'final_name', None)
    if name is not None:
        return name
    parts = getattr(description, 'name', None) or (getattr(description, 'cmd', None) or [None])[0]
    try:
        return os.path.basename(perform_substitutions(context, parts))
    except Exception:
        # A name that is not known yet, or no process.
        return getattr(target, '__name__', None) or type(target).__name__


def event_text(event_handler: BaseEventHandler, context: LaunchContext) -> str:
    """Return when a handler acts, for people."""
    kind = type(event_handler).__name__
    target = getattr(event_handler, 'target_action', None)
    of = '' if target is None else f' of {target_text(target, context)}'
    return f'on event {kind}{of}'


class EventHandlerAction(Action):
    """Base of the actions on an event handler."""

    def __init__(self, event_handler: BaseEventHandler, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.__event_handler = event_handler

    @property
    def event_handler(self) -> BaseEventHandler:
        """The handler."""
        return self.__event_handler


class RegisterEventHandler(EventHandlerAction):
    """Registers an event handler."""

    def execute(self, context: LaunchContext) -> None:
        """Register it."""
        plan = context.plan
        if plan is None:
            context.register_event_handler(self.event_handler)
            return
        text = event_text(self.event_handler, context)
        step = plan.add('on_event', text, event=type(self.event_handler).__name__)
        _, known = self.event_handler.describe()
        known = normalize_to_list_of_entities(known)
        if known:
            plan.add_later(step, known)
        else:
            plan.add_unknown(f'{text}: the handler is a function, which gets the event')

    def describe_conditional_sub_entities(
        self,
    ) -> List[Tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return the entities of the handler."""
        text, known = self.event_handler.describe()
        return [(text, normalize_to_list_of_entities(known))] if known else []
