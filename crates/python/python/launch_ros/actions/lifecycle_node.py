"""Action: start a process with a lifecycle node, and change its state by events."""

from __future__ import annotations

import launch.logging
from launch.actions import OpaqueFunction
from launch.event_handler import EventHandler
from launch.frontend.expose import expose_action

from launch_ros.actions.node import Node
from launch_ros.events.lifecycle import ChangeState, StateTransition
from launch_ros.ros_adapters import get_ros_node
from launch_ros.utilities.service_calls import call_service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple, Type

    from launch.frontend import Entity, Parser
    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity
    from launch.some_substitutions_type import SomeSubstitutionsType
    from lifecycle_msgs.msg import TransitionEvent


@expose_action('lifecycle_node')
class LifecycleNode(Node):
    """
    Starts a process with a lifecycle node.

    Events ChangeState change its state, and it emits events StateTransition. With
    ``autostart`` it is configured and activated when it has started.
    """

    def __init__(
        self,
        *,
        name: SomeSubstitutionsType,
        namespace: SomeSubstitutionsType,
        autostart: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, namespace=namespace, **kwargs)
        self.__autostart = autostart
        self.__logger = launch.logging.get_logger('launch_ros.actions.lifecycle_node')
        self.__subscription: Any = None
        self.__client: Any = None
        self.__state = ChangeState.valid_states[0]

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser, ignore: Optional[List[str]] = None,
    ) -> Tuple[Type[LifecycleNode], Dict[str, Any]]:
        """Return the class and its arguments."""
        _, kwargs = super().parse(entity, parser, ignore)
        kwargs.setdefault('namespace', '')
        kwargs['autostart'] = bool(entity.get_attr('autostart', data_type=bool, optional=True))
        return cls, kwargs

    @property
    def node_autostart(self) -> bool:
        """Whether it is configured and activated when it has started."""
        return self.__autostart

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Start the process."""
        self._perform_substitutions(context)
        if self.UNSPECIFIED_NODE_NAME in self.node_name:
            raise RuntimeError('node_name unexpectedly incomplete for lifecycle node')
        if context.plan is None:
            self.__connect(context)
        actions = list(super().execute(context) or ())
        if self.__autostart:
            from launch_ros.actions.lifecycle_transition import LifecycleTransition
            actions.append(LifecycleTransition(
                lifecycle_node_names=[self.node_name], transition_ids=[1, 3]))
        return actions

    def __connect(self, context: LaunchContext) -> None:
        from lifecycle_msgs.msg import TransitionEvent
        from lifecycle_msgs.srv import ChangeState as ChangeStateService
        node = get_ros_node(context)
        self.__subscription = node.create_subscription(
            TransitionEvent, f'{self.node_name}/transition_event',
            lambda msg: self._on_transition_event(context, msg), 10)
        self.__client = node.create_client(
            ChangeStateService, f'{self.node_name}/change_state')
        context.register_event_handler(EventHandler(
            matcher=lambda event: isinstance(event, ChangeState),
            entities=[OpaqueFunction(function=self._on_change_state_event)]))

    def _on_transition_event(self, context: LaunchContext, msg: TransitionEvent) -> None:
        """Emit an event; runs in the thread of the executor."""
        try:
            event = StateTransition(action=self, msg=msg)
            self.__state = ChangeState.valid_states[msg.goal_state.id]
            context.asyncio_loop.call_soon_threadsafe(
                lambda: context.emit_event_sync(event))
        except Exception as error:
            self.__logger.error(
                f"Exception in handling of 'lifecycle.msg.TransitionEvent': {error}")

    def _on_change_state_event(self, context: LaunchContext) -> None:
        event: Any = context.locals.event
        if not event.lifecycle_node_matcher(self):
            return
        context.add_completion_future(context.asyncio_loop.create_task(
            self.__change_state(event.transition_id, context)))

    async def __change_state(self, transition_id: int, context: LaunchContext) -> None:
        from lifecycle_msgs.srv import ChangeState as ChangeStateService
        request = ChangeStateService.Request()
        request.transition.id = transition_id
        response = await call_service(self.__client, request, context, self.__logger)
        if response is not None and not response.success:
            self.__logger.error(
                f"Failed to make transition '{ChangeState.valid_transitions[transition_id]}' "
                f"for LifecycleNode '{self.node_name}'")
