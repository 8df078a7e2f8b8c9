"""Event: a lifecycle node is to change its state."""

from __future__ import annotations

import collections

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch_ros.actions import LifecycleNode


class ChangeState(Event):
    """A lifecycle node is to change its state."""

    name = 'launch_ros.events.lifecycle.ChangeState'

    # lifecycle_msgs/msg/Transition
    valid_transitions = collections.OrderedDict([
        (0, 'TRANSITION_CREATE'),
        (1, 'TRANSITION_CONFIGURE'),
        (2, 'TRANSITION_CLEANUP'),
        (3, 'TRANSITION_ACTIVATE'),
        (4, 'TRANSITION_DEACTIVATE'),
        (5, 'TRANSITION_UNCONFIGURED_SHUTDOWN'),
        (6, 'TRANSITION_INACTIVE_SHUTDOWN'),
        (7, 'TRANSITION_ACTIVE_SHUTDOWN'),
        (8, 'TRANSITION_DESTROY'),
    ])

    # lifecycle_msgs/msg/State
    valid_states = collections.OrderedDict([
        (0, 'PRIMARY_STATE_UNKNOWN'),
        (1, 'PRIMARY_STATE_UNCONFIGURED'),
        (2, 'PRIMARY_STATE_INACTIVE'),
        (3, 'PRIMARY_STATE_ACTIVE'),
        (4, 'PRIMARY_STATE_FINALIZED'),
        (10, 'TRANSITION_STATE_CONFIGURING'),
        (11, 'TRANSITION_STATE_CLEANINGUP'),
        (12, 'TRANSITION_STATE_SHUTTINGDOWN'),
        (13, 'TRANSITION_STATE_ACTIVATING'),
        (14, 'TRANSITION_STATE_DEACTIVATING'),
        (15, 'TRANSITION_STATE_ERRORPROCESSING'),
    ])

    def __init__(
        self, *, lifecycle_node_matcher: Callable[[LifecycleNode], bool], transition_id: int,
    ) -> None:
        """
        Make an event.

        :param lifecycle_node_matcher: Says whether it is for a node.
        :param transition_id: One of lifecycle_msgs/msg/Transition.
        :raises ValueError: if there is no such transition.
        """
        super().__init__()
        if transition_id not in self.valid_transitions:
            known = ', '.join(f'{name}: {id_}' for id_, name in self.valid_transitions.items())
            raise ValueError(
                f"given transition_id of '{transition_id}', expected one of {{{known}}}")
        self.__lifecycle_node_matcher = lifecycle_node_matcher
        self.__transition_id = transition_id

    @property
    def lifecycle_node_matcher(self) -> Callable[[LifecycleNode], bool]:
        """Says whether it is for a node."""
        return self.__lifecycle_node_matcher

    @property
    def transition_id(self) -> int:
        """The transition."""
        return self.__transition_id
