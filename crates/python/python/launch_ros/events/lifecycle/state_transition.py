"""Event: a lifecycle node has changed its state."""

from __future__ import annotations

from launch.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lifecycle_msgs.msg import TransitionEvent

    from launch_ros.actions import LifecycleNode


class StateTransition(Event):
    """A lifecycle node has changed its state."""

    name = 'launch_ros.events.lifecycle.StateTransition'

    def __init__(self, *, action: LifecycleNode, msg: TransitionEvent) -> None:
        super().__init__()
        self.__action = action
        self.__msg = msg

    @property
    def action(self) -> LifecycleNode:
        """The action of the node."""
        return self.__action

    @property
    def msg(self) -> TransitionEvent:
        """The message."""
        return self.__msg

    @property
    def timestamp(self) -> int:
        """The time stamp of the message, in nanoseconds."""
        return self.__msg.timestamp

    @property
    def transition(self) -> str:
        """The transition, such as 'configure'."""
        return self.__msg.transition.label

    @property
    def start_state(self) -> str:
        """The state before, such as 'configuring'."""
        return self.__msg.start_state.label

    @property
    def goal_state(self) -> str:
        """The state now, such as 'inactive'."""
        return self.__msg.goal_state.label
