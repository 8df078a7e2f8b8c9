"""The state machine of lifecycle nodes."""

from __future__ import annotations

from pteros import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple


class LifecycleStateMachine(_native.StateMachine):
    """The state of a lifecycle node, its services and the publisher of its transitions."""

    def __init__(self) -> None:
        # The servers of the node, or None without a communication interface.
        self.service_change_state: Any = None
        self.service_get_state: Any = None
        self.service_get_available_states: Any = None
        self.service_get_available_transitions: Any = None
        self.service_get_transition_graph: Any = None
        self.publisher: Any = None

    @property
    def initialized(self) -> bool:
        """Whether the machine has a state: always."""
        return True

    def trigger_transition_by_id(self, transition_id: int, publish_update: bool) -> None:
        """
        Make a transition.

        :param publish_update: Publish it on ``~/transition_event``.
        :raises RCLError: if it is not possible from this state.
        """
        transition = self.make_transition(transition_id)
        if publish_update and self.publisher is not None:
            self._publish(transition)

    def trigger_transition_by_label(self, label: str, publish_update: bool) -> None:
        """
        Make the transition with a label.

        :param publish_update: Publish it on ``~/transition_event``.
        :raises RCLError: if it is not possible from this state.
        """
        self.trigger_transition_by_id(self.get_transition_by_label(label), publish_update)

    def _publish(self, transition: Tuple[int, str, int, str, int, str]) -> None:
        import time

        from lifecycle_msgs.msg import TransitionEvent
        event = TransitionEvent()
        event.timestamp = time.time_ns()
        event.transition.id, event.transition.label = transition[:2]
        event.start_state.id, event.start_state.label = transition[2:4]
        event.goal_state.id, event.goal_state.label = transition[4:]
        self.publisher.publish(event)
