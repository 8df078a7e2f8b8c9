"""Handler: a lifecycle node has changed its state."""

from __future__ import annotations

from launch.event_handler import EventHandler

from launch_ros.events.lifecycle import StateTransition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from launch.event import Event
    from launch.some_entities_type import SomeEntitiesType

    from launch_ros.actions import LifecycleNode


class OnStateTransition(EventHandler):
    """Visits entities when a lifecycle node has changed its state."""

    def __init__(
        self,
        *,
        entities: SomeEntitiesType,
        target_lifecycle_node: Optional[LifecycleNode] = None,
        transition: Optional[str] = None,
        start_state: Optional[str] = None,
        goal_state: Optional[str] = None,
        matcher: Optional[Callable[[Event], bool]] = None,
        **kwargs: Any,
    ) -> None:
        """
        Make a handler.

        :param target_lifecycle_node: The node; ``None`` for all.
        :param transition: The transition; ``None`` for all; and so on.
        :param matcher: Decides in place of these.
        :raises RuntimeError: if the target is no LifecycleNode.
        """
        from launch_ros.actions import LifecycleNode
        if not isinstance(target_lifecycle_node, (LifecycleNode, type(None))):
            raise RuntimeError("OnStateTransition requires a 'LifecycleNode' action as the target")
        self.__target = target_lifecycle_node
        wanted = {
            name: value for name, value in (
                ('action', target_lifecycle_node), ('transition', transition),
                ('start_state', start_state), ('goal_state', goal_state))
            if value is not None}

        def matches(event: Event) -> bool:
            return isinstance(event, StateTransition) and all(
                getattr(event, name) == value for name, value in wanted.items())

        super().__init__(matcher=matcher or matches, entities=entities, **kwargs)

    @property
    def target_action(self) -> Optional[LifecycleNode]:
        """The node; ``None`` for all."""
        return self.__target

    @property
    def handler_description(self) -> str:
        """What the handler does, for people."""
        return '<actions>'

    @property
    def matcher_description(self) -> str:
        """Which events match, for people."""
        if self.__target is None:
            return 'event == StateTransition'
        return f'event == StateTransition and event.action == {self.__target}'
