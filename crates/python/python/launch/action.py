"""Action: an entity that does something when it is visited."""

from __future__ import annotations

from launch._error_text import note_place, place_of_caller
from launch.launch_description_entity import LaunchDescriptionEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple, Type

    from launch.condition import Condition
    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext


class Action(LaunchDescriptionEntity):
    """Base of all actions."""

    _TEXTS: Dict[str, str] = {}
    """The attributes of elements that are texts, by the arguments that get them."""

    def __init__(self, *, condition: Optional[Condition] = None) -> None:
        self.__condition = condition
        self._place = place_of_caller()

    @classmethod
    def parse(cls, entity: Entity, parser: Parser) -> Tuple[Type[Action], Dict[str, Any]]:
        """Return the class and its arguments: its texts, and what all actions have."""
        from launch.conditions import conditions_of_entity
        kwargs = conditions_of_entity(entity, parser)
        for argument, attribute in cls._TEXTS.items():
            kwargs[argument] = parser.parse_substitution(entity.get_attr(attribute))
        return cls, kwargs

    @property
    def condition(self) -> Optional[Condition]:
        """The condition of the action."""
        return self.__condition

    def describe(self) -> str:
        """Return a text for people."""
        return repr(self)

    def get_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the entities of the action; subclasses override it."""
        return []

    def describe_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the entities of an unconditional action."""
        return [] if self.__condition is not None else self.get_sub_entities()

    def describe_conditional_sub_entities(
        self,
    ) -> List[Tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return the entities of a conditional action."""
        if self.__condition is None:
            return []
        return [(f'Conditionally included by {self.describe()}', self.get_sub_entities())]

    def visit(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Carry the action out if its condition holds."""
        try:
            if self.__condition is not None and not self.__condition.evaluate(context):
                return None
            try:
                return self.execute(context)
            finally:
                self.__report_completion(context)
        except Exception as error:
            note_place(error, self._place, context)
            raise

    def __report_completion(self, context: LaunchContext) -> None:
        from launch.events import ExecutionComplete
        event = ExecutionComplete(action=self)
        if not context.would_handle_event(event):
            return
        future = self.get_asyncio_future()
        if future is None:
            context.emit_event_sync(event)
        else:
            future.add_done_callback(lambda _: context.emit_event_sync(event))

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Carry the action out, and return the entities to visit next."""
        return None
