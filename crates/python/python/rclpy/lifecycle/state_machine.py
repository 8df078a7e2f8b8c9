"""The state machine of lifecycle nodes."""

from __future__ import annotations

from rclpy.impl.errors import RCLError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, NamedTuple, Tuple
else:
    from collections import namedtuple

STATES: Dict[int, str] = {
    0: 'unknown', 1: 'unconfigured', 2: 'inactive', 3: 'active', 4: 'finalized',
    10: 'configuring', 11: 'cleaningup', 12: 'shuttingdown', 13: 'activating',
    14: 'deactivating', 15: 'errorprocessing',
}
"""The labels of the states of ``lifecycle_msgs/msg/State``."""

_SUCCESS, _FAILURE, _ERROR = 'transition_success', 'transition_failure', 'transition_error'

if TYPE_CHECKING:
    class Transition(NamedTuple):
        """A transition: its number, its label, and the numbers of its states."""

        id: int
        label: str
        start: int
        goal: int
else:
    Transition = namedtuple('Transition', ('id', 'label', 'start', 'goal'))

TRANSITIONS: Tuple[Transition, ...] = tuple(Transition(*row) for row in (
    (1, 'configure', 1, 10), (10, _SUCCESS, 10, 2), (11, _FAILURE, 10, 1), (12, _ERROR, 10, 15),
    (2, 'cleanup', 2, 11), (20, _SUCCESS, 11, 1), (21, _FAILURE, 11, 2), (22, _ERROR, 11, 15),
    (3, 'activate', 2, 13), (30, _SUCCESS, 13, 3), (31, _FAILURE, 13, 2), (32, _ERROR, 13, 15),
    (4, 'deactivate', 3, 14), (40, _SUCCESS, 14, 2), (41, _FAILURE, 14, 3),
    (42, _ERROR, 14, 15),
    (5, 'shutdown', 1, 12), (6, 'shutdown', 2, 12), (7, 'shutdown', 3, 12),
    (50, _SUCCESS, 12, 4), (51, _FAILURE, 12, 4), (52, _ERROR, 12, 15),
    (60, _SUCCESS, 15, 1), (61, _FAILURE, 15, 4), (62, _ERROR, 15, 4),
))
"""The transitions of ``lifecycle_msgs/msg/Transition``."""


class LifecycleStateMachine:
    """The state of a lifecycle node, and the transitions that are possible."""

    def __init__(self) -> None:
        self._state = 1
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

    @property
    def current_state(self) -> Tuple[int, str]:
        """The number and label of the state."""
        return self._state, STATES[self._state]

    @property
    def available_states(self) -> List[Tuple[int, str]]:
        """All states."""
        return list(STATES.items())

    @property
    def available_transitions(self) -> List[Tuple[int, str, int, str, int, str]]:
        """The transitions from this state: number, label, and both states."""
        return [row for row in self.transition_graph if row[2] == self._state]

    @property
    def transition_graph(self) -> List[Tuple[int, str, int, str, int, str]]:
        """All transitions: number, label, and both states."""
        return [
            (each.id, each.label, each.start, STATES[each.start], each.goal, STATES[each.goal])
            for each in TRANSITIONS]

    def get_transition_by_label(self, label: str) -> int:
        """
        Return the number of the transition with a label from this state.

        :raises RCLError: if there is none.
        """
        for transition in TRANSITIONS:
            if transition.start == self._state and transition.label == label:
                return transition.id
        raise RCLError(self._impossible(repr(label)))

    def trigger_transition_by_id(self, transition_id: int, publish_update: bool) -> None:
        """
        Make a transition.

        :param publish_update: Publish it on ``~/transition_event``.
        :raises RCLError: if it is not possible from this state.
        """
        for transition in TRANSITIONS:
            if transition.start == self._state and transition.id == transition_id:
                self._state = transition.goal
                if publish_update and self.publisher is not None:
                    self._publish(transition)
                return
        raise RCLError(self._impossible(f'number {transition_id}'))

    def trigger_transition_by_label(self, label: str, publish_update: bool) -> None:
        """
        Make the transition with a label.

        :param publish_update: Publish it on ``~/transition_event``.
        :raises RCLError: if it is not possible from this state.
        """
        self.trigger_transition_by_id(self.get_transition_by_label(label), publish_update)

    def _impossible(self, name: str) -> str:
        possible = ', '.join(
            each.label for each in TRANSITIONS if each.start == self._state) or 'none'
        return (f'transition {name} is not possible in the state {STATES[self._state]!r}; '
                f'possible: {possible}')

    def _publish(self, transition: Transition) -> None:
        import time

        from lifecycle_msgs.msg import TransitionEvent
        event = TransitionEvent()
        event.timestamp = time.time_ns()
        event.transition.id = transition.id
        event.transition.label = transition.label
        event.start_state.id = transition.start
        event.start_state.label = STATES[transition.start]
        event.goal_state.id = transition.goal
        event.goal_state.label = STATES[transition.goal]
        self.publisher.publish(event)
