"""Lifecycle nodes."""

from __future__ import annotations

from collections import namedtuple

from rclpy._imported_names import getter_of
from rclpy.impl.errors import RCLError
from rclpy.lifecycle.managed_entity import ManagedEntity, TransitionCallbackReturn
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.lifecycle.state_machine import LifecycleStateMachine
from rclpy.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from rclpy.callback_groups import CallbackGroup
else:
    __getattr__ = getter_of(__name__)

LifecycleState = namedtuple('LifecycleState', ('label', 'state_id'))
LifecycleState.__doc__ = """A state: its label and its number of ``lifecycle_msgs/msg/State``."""

_CONFIGURING, _CLEANINGUP, _SHUTTINGDOWN = 10, 11, 12
_ACTIVATING, _DEACTIVATING, _ERRORPROCESSING = 13, 14, 15


class LifecycleNodeMixin(ManagedEntity):
    """
    The lifecycle of a node. Its class inherits from this one and from ``Node``.

    The transition callbacks of this class call those of the managed entities.
    """

    def __init__(
        self, *, enable_communication_interface: bool = True,
        callback_group: Optional[CallbackGroup] = None,
    ) -> None:
        """
        Add a lifecycle to a node, after ``Node.__init__``.

        :param enable_communication_interface: Create the services through which others read and
            change the state, and publish transitions.
        :param callback_group: The group of the services.
        :raises TypeError: if ``enable_communication_interface`` is no bool.
        """
        if not isinstance(enable_communication_interface, bool):
            raise TypeError(
                'enable_communication_interface must be a bool, got '
                f'{enable_communication_interface!r}')
        self._callbacks: Dict[int, Callable[[Any], TransitionCallbackReturn]] = {
            _CONFIGURING: self.on_configure, _CLEANINGUP: self.on_cleanup,
            _SHUTTINGDOWN: self.on_shutdown, _ACTIVATING: self.on_activate,
            _DEACTIVATING: self.on_deactivate, _ERRORPROCESSING: self.on_error}
        self._managed_entities: Dict[ManagedEntity, None] = {}
        self._state_machine = LifecycleStateMachine()
        if not enable_communication_interface:
            return
        from lifecycle_msgs.msg import TransitionEvent
        from lifecycle_msgs.srv import (
            ChangeState, GetAvailableStates, GetAvailableTransitions, GetState,
        )
        machine = self._state_machine
        machine.publisher = self.create_publisher(TransitionEvent, '~/transition_event', 10)

        def create(service_type: Any, name: str, callback: Any) -> Any:
            service = self.create_service(
                service_type, f'~/{name}', callback, callback_group=callback_group)
            setattr(machine, f'service_{name}', service)
            setattr(self, f'_service_{name}', service)

        create(ChangeState, 'change_state', self.__on_change_state)
        create(GetState, 'get_state', self.__on_get_state)
        create(GetAvailableStates, 'get_available_states', self.__on_get_available_states)
        create(
            GetAvailableTransitions, 'get_available_transitions',
            self.__on_get_available_transitions)
        create(GetAvailableTransitions, 'get_transition_graph', self.__on_get_transition_graph)

    # --- transitions

    def trigger_configure(self) -> TransitionCallbackReturn:
        """Make the transition configure; ``RCLError`` if the state does not allow it."""
        return self.__trigger('configure')

    def trigger_cleanup(self) -> TransitionCallbackReturn:
        """Make the transition cleanup; ``RCLError`` if the state does not allow it."""
        return self.__trigger('cleanup')

    def trigger_shutdown(self) -> TransitionCallbackReturn:
        """Make the transition shutdown; ``RCLError`` if the state does not allow it."""
        return self.__trigger('shutdown')

    def trigger_activate(self) -> TransitionCallbackReturn:
        """Make the transition activate; ``RCLError`` if the state does not allow it."""
        return self.__trigger('activate')

    def trigger_deactivate(self) -> TransitionCallbackReturn:
        """Make the transition deactivate; ``RCLError`` if the state does not allow it."""
        return self.__trigger('deactivate')

    def __trigger(self, label: str) -> TransitionCallbackReturn:
        return self.__change_state(self._state_machine.get_transition_by_label(label))

    def __change_state(self, transition_id: int) -> TransitionCallbackReturn:
        machine = self._state_machine
        state_id, label = machine.current_state
        initial = LifecycleState(state_id=state_id, label=label)
        machine.trigger_transition_by_id(transition_id, True)
        result = self.__execute_callback(machine.current_state[0], initial)
        machine.trigger_transition_by_label(result.to_label(), True)
        if result == TransitionCallbackReturn.ERROR:
            error_result = self.__execute_callback(machine.current_state[0], initial)
            machine.trigger_transition_by_label(error_result.to_label(), True)
        return result

    def __execute_callback(self, state_id: int, previous: Any) -> TransitionCallbackReturn:
        callback = self._callbacks.get(state_id)
        if callback is None:
            return TransitionCallbackReturn.SUCCESS
        try:
            return TransitionCallbackReturn(callback(previous))
        except Exception as error:
            self.get_logger().error(
                f'lifecycle callback of the state {self._state_machine.current_state[1]!r} '
                f'failed: {type(error).__name__}: {error}')
            return TransitionCallbackReturn.ERROR

    # --- managed entities

    def add_managed_entity(self, entity: ManagedEntity) -> None:
        """
        Let an entity follow the transitions of the node.

        :raises TypeError: if it is no :class:`ManagedEntity`.
        """
        if not isinstance(entity, ManagedEntity):
            raise TypeError(
                f'Expected a rclpy.lifecycle.ManagedEntity instance, got {entity!r}')
        self._managed_entities[entity] = None

    def __call_entities(self, callback_name: str, state: Any) -> TransitionCallbackReturn:
        for entity in list(self._managed_entities):
            result = getattr(entity, callback_name)(state)
            if not isinstance(result, TransitionCallbackReturn):
                raise TypeError(
                    f'{callback_name}() return value of {entity!r} should be a '
                    f'TransitionCallbackReturn, got {result!r}')
            if result != TransitionCallbackReturn.SUCCESS:
                return result
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Configure the managed entities."""
        return self.__call_entities('on_configure', state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Clean the managed entities up."""
        return self.__call_entities('on_cleanup', state)

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Shut the managed entities down."""
        return self.__call_entities('on_shutdown', state)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Activate the managed entities."""
        return self.__call_entities('on_activate', state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Deactivate the managed entities."""
        return self.__call_entities('on_deactivate', state)

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Let the managed entities handle an error."""
        return self.__call_entities('on_error', state)

    def create_lifecycle_publisher(self, *args: Any, **kwargs: Any) -> LifecyclePublisher:
        """
        Create a publisher that publishes only while the node is active.

        The parameters are those of ``Node.create_publisher``.

        :raises TypeError: if ``publisher_class`` is given.
        """
        if 'publisher_class' in kwargs:
            raise TypeError(
                "create_publisher() got an unexpected keyword argument 'publisher_class'")
        publisher = self.create_publisher(*args, **kwargs, publisher_class=LifecyclePublisher)
        self._managed_entities[publisher] = None
        return publisher

    def destroy_lifecycle_publisher(self, publisher: LifecyclePublisher) -> bool:
        """Destroy a publisher; ``False`` if it is not the node's."""
        self._managed_entities.pop(publisher, None)
        return self.destroy_publisher(publisher)

    # --- services

    def __on_change_state(self, request: Any, response: Any) -> Any:
        transition_id = request.transition.id
        try:
            if request.transition.label:
                transition_id = self._state_machine.get_transition_by_label(
                    request.transition.label)
            response.success = (
                self.__change_state(transition_id) == TransitionCallbackReturn.SUCCESS)
        except RCLError as error:
            self.get_logger().warning(str(error))
            response.success = False
        return response

    def __on_get_state(self, request: Any, response: Any) -> Any:
        response.current_state.id, response.current_state.label = (
            self._state_machine.current_state)
        return response

    def __on_get_available_states(self, request: Any, response: Any) -> Any:
        from lifecycle_msgs.msg import State
        response.available_states = [
            State(id=state_id, label=label)
            for state_id, label in self._state_machine.available_states]
        return response

    def __on_get_available_transitions(self, request: Any, response: Any) -> Any:
        response.available_transitions = _descriptions(self._state_machine.available_transitions)
        return response

    def __on_get_transition_graph(self, request: Any, response: Any) -> Any:
        response.available_transitions = _descriptions(self._state_machine.transition_graph)
        return response


def _descriptions(rows: Any) -> Any:
    from lifecycle_msgs.msg import State, Transition, TransitionDescription
    return [
        TransitionDescription(
            transition=Transition(id=number, label=label),
            start_state=State(id=start, label=start_label),
            goal_state=State(id=goal, label=goal_label))
        for number, label, start, start_label, goal, goal_label in rows]


class LifecycleNode(LifecycleNodeMixin, Node):
    """A node with a lifecycle."""

    def __init__(
        self, node_name: str, *, enable_communication_interface: bool = True, **kwargs: Any,
    ) -> None:
        """
        Create a node in the state unconfigured.

        :param node_name: The name of the node.
        :param enable_communication_interface: Create the services through which others read and
            change the state, and publish transitions.
        :param kwargs: The keywords of ``Node``.
        """
        Node.__init__(self, node_name, **kwargs)
        LifecycleNodeMixin.__init__(
            self, enable_communication_interface=enable_communication_interface)
