"""Servers of actions."""

from __future__ import annotations

import threading
import traceback
import weakref
from enum import Enum

from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.action.client import create_endpoints
from rclpy.constants import S_TO_NS
from rclpy.executors import await_or_execute
from rclpy.impl.errors import InvalidHandle, RCLError
from rclpy.impl.named_enum import NamedEnum
from rclpy.impl.node_entity import Generic
from rclpy.qos import (
    QoSProfile, qos_profile_action_status_default, qos_profile_services_default,
)
from rclpy.task import Future
from rclpy.type_support import check_is_valid_action_type
from rclpy.waitable import NumberOfEntities, StaticWaitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from rclpy.callback_groups import CallbackGroup
    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)


class GoalResponse(Enum):
    """What a goal callback returns."""

    REJECT = 1
    ACCEPT = 2


class CancelResponse(Enum):
    """What a cancel callback returns."""

    REJECT = 1
    ACCEPT = 2


class GoalEvent(NamedEnum):
    """What changes the state of a goal."""

    EXECUTE = 0
    CANCEL_GOAL = 1
    SUCCEED = 2
    ABORT = 3
    CANCELED = 4


_CANCELING = GoalStatus.STATUS_CANCELING

_TARGETS = {
    GoalEvent.EXECUTE: GoalStatus.STATUS_EXECUTING,
    GoalEvent.CANCEL_GOAL: _CANCELING,
    GoalEvent.SUCCEED: GoalStatus.STATUS_SUCCEEDED,
    GoalEvent.ABORT: GoalStatus.STATUS_ABORTED,
    GoalEvent.CANCELED: GoalStatus.STATUS_CANCELED,
}
"""The status that an event leads to."""


class ServerGoalHandle(Generic):
    """A goal that was accepted."""

    def __init__(self, action_server: ActionServer, goal_info: GoalInfo, goal_request: Any) -> None:
        self._action_server = action_server
        self._goal_info = goal_info
        self._goal_request = goal_request
        self._key = bytes(goal_info.goal_id.uuid)
        self._destroyed = False
        self._lock = threading.Lock()
        self._result_future: Optional[Future] = None
        # Execute callbacks that wait or run; behind the server's lock.
        self._executions = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServerGoalHandle) and self.goal_id == other.goal_id

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    @property
    def request(self) -> Any:
        """The goal."""
        return self._goal_request

    @property
    def goal_id(self) -> Any:
        """The id of the goal."""
        return self._goal_info.goal_id

    @property
    def is_active(self) -> bool:
        """Whether the goal is accepted, executing or canceling."""
        return GoalStatus.STATUS_UNKNOWN < self.status <= _CANCELING

    @property
    def is_cancel_requested(self) -> bool:
        """Whether the goal is canceling."""
        return self._action_server._goals.status(self._key) == _CANCELING

    @property
    def status(self) -> int:
        """The status, of ``action_msgs/msg/GoalStatus``."""
        if self._destroyed:
            return GoalStatus.STATUS_UNKNOWN
        return self._action_server._goals.status(self._key)

    def _update_state(self, event: GoalEvent) -> None:
        with self._lock:
            if self._destroyed:
                return
            self._action_server._goals.transition(
                self._key, _TARGETS[event], self._action_server._now_ns())
            active = self.is_active
        self._action_server._publish_status()
        if not active:
            self._action_server.notify_goal_done()

    def execute(self, execute_callback: Optional[Callable[[Any], Any]] = None) -> None:
        """
        Let the executor run the execute callback.

        :param execute_callback: Another callback than the server's.
        """
        # A goal that is canceling already stays so.
        if not self.is_cancel_requested:
            self._update_state(GoalEvent.EXECUTE)
        self._action_server.notify_execute(self, execute_callback)

    def publish_feedback(self, feedback: Any) -> None:
        """
        Publish feedback.

        :raises TypeError: if it is not of the action's type.
        """
        if not isinstance(feedback, self._action_server.action_type.Feedback):
            raise TypeError(
                f'expected feedback of type {self._action_server.action_type.Feedback}, got '
                f'{type(feedback)}')
        with self._lock:
            if self._destroyed:
                return
            message = self._action_server.action_type.Impl.FeedbackMessage()
            message.goal_id = self.goal_id
            message.feedback = feedback
            self._action_server._feedback_publisher.publish(message)

    def succeed(self) -> None:
        """Set the status to succeeded."""
        self._update_state(GoalEvent.SUCCEED)

    def abort(self) -> None:
        """Set the status to aborted."""
        self._update_state(GoalEvent.ABORT)

    def canceled(self) -> None:
        """Set the status to canceled; the goal must be canceling."""
        self._update_state(GoalEvent.CANCELED)

    def destroy(self) -> None:
        """Forget the goal."""
        with self._lock:
            self._destroyed = True
        self._action_server._forget(self)


def _nanoseconds(stamp: Any) -> int:
    return stamp.sec * S_TO_NS + stamp.nanosec


def default_handle_accepted_callback(goal_handle: ServerGoalHandle) -> None:
    """Execute the goal."""
    goal_handle.execute()


def default_goal_callback(goal_request: Any) -> GoalResponse:
    """Accept every goal."""
    return GoalResponse.ACCEPT


def default_cancel_callback(cancel_request: Any) -> CancelResponse:
    """Reject every cancel request."""
    return CancelResponse.REJECT


class ActionServer(StaticWaitable):
    """Accepts goals and executes them."""

    def __init__(
        self, node: Node, action_type: Any, action_name: str,
        execute_callback: Callable[[ServerGoalHandle], Any], *,
        callback_group: Optional[CallbackGroup] = None,
        goal_callback: Optional[Callable[[Any], Any]] = default_goal_callback,
        handle_accepted_callback: Optional[Callable[[ServerGoalHandle], Any]] = (
            default_handle_accepted_callback),
        cancel_callback: Optional[Callable[[Any], Any]] = default_cancel_callback,
        goal_service_qos_profile: QoSProfile = qos_profile_services_default,
        result_service_qos_profile: QoSProfile = qos_profile_services_default,
        cancel_service_qos_profile: QoSProfile = qos_profile_services_default,
        feedback_pub_qos_profile: QoSProfile = QoSProfile(depth=10),
        status_pub_qos_profile: QoSProfile = qos_profile_action_status_default,
        result_timeout: float = 900,
    ) -> None:
        """
        Create a server. Every callback may be a coroutine function.

        :param node: The node that owns the server.
        :param action_type: The action class.
        :param action_name: The action.
        :param execute_callback: Gets the handle of an accepted goal, sets its final status and
            returns its result.
        :param callback_group: The group of the callbacks.
        :param goal_callback: Gets a goal and returns a :class:`GoalResponse`.
        :param handle_accepted_callback: Gets the handle of an accepted goal; the default
            executes it at once.
        :param cancel_callback: Gets the handle of a goal and returns a :class:`CancelResponse`.
        :param result_timeout: Seconds for which a result is kept.
        :raises ValueError: if the name is invalid, or the context is shut down.
        """
        if callback_group is None:
            callback_group = node.default_callback_group
        self._lock = threading.Lock()
        self.register_handle_accepted_callback(handle_accepted_callback)
        self.register_goal_callback(goal_callback)
        self.register_cancel_callback(cancel_callback)
        self.register_execute_callback(execute_callback)
        check_is_valid_action_type(action_type)
        self._node = node
        self._action_type = action_type
        self._clock = node.get_clock()
        if isinstance(result_timeout, (str, bytes)):
            raise TypeError(f'result_timeout must be a number of seconds, got {result_timeout!r}')
        self._result_timeout_ns = int(result_timeout * S_TO_NS)
        _, endpoints = create_endpoints(
            node, action_type, action_name, _native.Service, _native.Publisher,
            (goal_service_qos_profile, cancel_service_qos_profile, result_service_qos_profile,
             feedback_pub_qos_profile, status_pub_qos_profile))
        (self._goal_service, self._cancel_service, self._result_service, self._feedback_publisher,
         self._status_publisher) = endpoints
        self._expire_timer = _native.Timer(
            self._clock.handle, node.context._require_handle(),
            max(self._result_timeout_ns, 0), False)
        super().__init__(callback_group)
        self._handles = (
            self._goal_service, self._cancel_service, self._result_service, self._expire_timer)
        self._goals = _native.GoalTable(max(self._result_timeout_ns, 0))
        self._goal_handles: Dict[bytes, ServerGoalHandle] = {}
        self._result_futures: Dict[bytes, Future] = {}
        self._executor_reference: Any = lambda: None
        self._logger = node.get_logger().get_child('action_server')
        node.add_waitable(self)

    def _static_handles(self) -> Any:
        return self._handles

    def get_num_entities(self) -> NumberOfEntities:
        """Return the three services and the timer of the action."""
        return NumberOfEntities(num_timers=1, num_services=3)

    @property
    def action_type(self) -> Any:
        """The action class."""
        return self._action_type

    def _now_ns(self) -> int:
        return self._clock.handle.now()

    def _take_handle(self, handle: Any, executor: Any) -> Any:
        if executor is not None and self._executor_reference() is not executor:
            self._executor_reference = weakref.ref(executor)
        if handle is self._expire_timer:
            if not handle.is_ready():
                return None
            handle.cancel_timer()
            return self._expire_goals, ()
        taken = handle.take_request()
        if taken is None:
            return None
        if handle is self._goal_service:
            return self._execute_goal_request, taken
        if handle is self._cancel_service:
            return self._execute_cancel_request, taken
        return self._execute_get_result_request, taken

    def _respond(self, service: Any, response: Any, header: Any, what: str) -> bool:
        try:
            service.send_response(response, header)
        except InvalidHandle:
            # The server is destroyed.
            return False
        except RCLError:
            self._logger.warn(f'Failed to send {what} response (the client may have gone away)')
            return False
        return True

    # --- goals

    async def _execute_goal_request(self, request: Any, header: Any) -> None:
        goal_id = request.goal_id
        key = bytes(goal_id.uuid)
        info = GoalInfo()
        info.goal_id = goal_id
        accepted = False
        if self._goals.is_full():
            self._logger.warning(
                'Goal rejected: the table of goals is full, and all are active. Let goals end.')
        elif not self._goals.contains(key):
            response = await await_or_execute(self._goal_callback, request.goal)
            if isinstance(response, GoalResponse):
                accepted = response is GoalResponse.ACCEPT
            else:
                self._logger.warning(
                    'Goal request callback did not return a GoalResponse type. Rejecting goal.')
        goal_handle = None
        if accepted:
            info.stamp = self._clock.now().to_msg()
            goal_handle = ServerGoalHandle(self, info, request.goal)
            future = goal_handle._result_future = Future(executor=self._executor_reference())
            with self._lock:
                # The same id may have been accepted while the goal callback ran.
                accepted, dropped = self._goals.accept(key, _nanoseconds(info.stamp))
                if accepted:
                    removed = [] if dropped is None else [self._remove(dropped)]
                    self._goal_handles[key] = goal_handle
                    self._result_futures[key] = future
            if accepted:
                self._forsake(removed)
        message = self._action_type.Impl.SendGoalService.Response()
        message.accepted = accepted
        message.stamp = info.stamp
        if self._respond(self._goal_service, message, header, 'goal') and accepted:
            await await_or_execute(self._handle_accepted_callback, goal_handle)

    async def _execute_goal(
        self, execute_callback: Callable[[ServerGoalHandle], Any],
        goal_handle: ServerGoalHandle,
    ) -> None:
        response = None
        try:
            response = await self._result_of(execute_callback, goal_handle)
        finally:
            future = goal_handle._result_future
            with self._lock:
                goal_handle._executions -= 1
                key = goal_handle._key
                is_removed = self._goal_handles.get(key) is not goal_handle
                if is_removed and self._result_futures.get(key) is future:
                    # The goal was removed meanwhile.
                    del self._result_futures[key]
        if response is not None and future is not None:
            future.set_result(response)

    async def _result_of(
        self, execute_callback: Callable[[ServerGoalHandle], Any],
        goal_handle: ServerGoalHandle,
    ) -> Any:
        """Execute a goal and return the response with its result; ``None`` after a shutdown."""
        try:
            result = await await_or_execute(execute_callback, goal_handle)
        except Exception as error:
            if isinstance(error, RCLError) and not self._node.context.ok():
                # The program shuts down: no client can hear of the goal any more.
                self._logger.debug(f'Execute callback ended by the shutdown: {error}')
                return None
            result = self._action_type.Result()
            self._logger.error(f'Error raised in execute callback: {error}')
            traceback.print_exc()
        if goal_handle.is_active and not self._node.context.ok():
            return None
        if goal_handle.is_active:
            self._logger.warning(
                f'Goal state not set, assuming aborted. Goal ID: {goal_handle._key.hex()}')
            if goal_handle.status == GoalStatus.STATUS_ACCEPTED:
                goal_handle._update_state(GoalEvent.EXECUTE)
            goal_handle.abort()
        response = self._action_type.Impl.GetResultService.Response()
        response.status = goal_handle.status
        response.result = result
        return response

    async def _execute_cancel_request(self, request: Any, header: Any) -> None:
        response, candidates = self._find_goals_to_cancel(request)
        canceling = []
        for goal_handle in candidates:
            answer = await await_or_execute(self._cancel_callback, goal_handle)
            if answer is not CancelResponse.ACCEPT:
                continue
            try:
                goal_handle._update_state(GoalEvent.CANCEL_GOAL)
            except RCLError as error:
                self._logger.debug(f'Failed to cancel goal in cancel callback: {error}')
                continue
            canceling.append(goal_handle._goal_info)
        response.goals_canceling = canceling
        if candidates and not canceling:
            response.return_code = CancelGoal.Response.ERROR_REJECTED
        self._respond(self._cancel_service, response, header, 'cancel')

    def _find_goals_to_cancel(self, request: Any) -> Any:
        """Return the response, and the goals that a request selects by id and time."""
        response = CancelGoal.Response()
        info = request.goal_info
        response.return_code, keys = self._goals.select_for_cancel(
            bytes(info.goal_id.uuid), _nanoseconds(info.stamp))
        with self._lock:
            return response, [
                self._goal_handles[key] for key in keys if key in self._goal_handles]

    def _execute_get_result_request(self, request: Any, header: Any) -> None:
        with self._lock:
            future = self._result_futures.get(bytes(request.goal_id.uuid))
        if future is None:
            response = self._action_type.Impl.GetResultService.Response()
            response.status = GoalStatus.STATUS_UNKNOWN
            self._respond(self._result_service, response, header, 'result')
            return
        future.add_done_callback(
            lambda done: self._respond(self._result_service, done.result(), header, 'result'))

    def _publish_status(self) -> None:
        message = GoalStatusArray()
        with self._lock:
            # Both are in the order of acceptance.
            message.status_list = [
                GoalStatus(goal_info=each._goal_info, status=status)
                for each, status in zip(self._goal_handles.values(), self._goals.statuses())]
        self._status_publisher.publish(message)

    # --- expiry

    def notify_goal_done(self) -> None:
        """Start the timer that forgets results."""
        if self._result_timeout_ns < 0:
            return
        expiry = self._goals.next_expiry()
        if expiry is None:
            self._expire_timer.cancel_timer()
            return
        left_ns = max(expiry - self._now_ns(), 0)
        self._expire_timer.change_timer_period(left_ns)
        self._expire_timer.reset_timer()

    def _expire_goals(self) -> None:
        with self._lock:
            removed = [self._remove(key) for key in self._goals.expire(self._now_ns())]
        self._forsake(removed)
        self.notify_goal_done()

    def _remove(self, key: bytes) -> Tuple[Optional[ServerGoalHandle], Optional[Future]]:
        """
        Remove a goal, with the lock held; :meth:`_forsake` must follow, without it.

        :returns: its handle, and its result, unless an execute callback that waits or runs is
            still to give that.
        """
        goal_handle = self._goal_handles.pop(key, None)
        self._goals.remove(key)
        if goal_handle is not None and goal_handle._executions:
            return goal_handle, None
        return goal_handle, self._result_futures.pop(key, None)

    def _forsake(
        self, removed: List[Tuple[Optional[ServerGoalHandle], Optional[Future]]],
    ) -> None:
        """Destroy the handles of removed goals, and tell those who wait for a result."""
        for goal_handle, future in removed:
            if goal_handle is not None:
                # A handle's lock is held while it publishes feedback.
                with goal_handle._lock:
                    goal_handle._destroyed = True
            if future is not None and not future.done():
                response = self._action_type.Impl.GetResultService.Response()
                response.status = GoalStatus.STATUS_UNKNOWN
                future.set_result(response)

    def _forget(self, goal_handle: ServerGoalHandle) -> None:
        """Remove a goal whose handle is destroyed."""
        with self._lock:
            if self._goal_handles.get(goal_handle._key) is not goal_handle:
                return
            removed = self._remove(goal_handle._key)
        self._forsake([removed])

    # --- callbacks

    def notify_execute(
        self, goal_handle: ServerGoalHandle,
        execute_callback: Optional[Callable[[ServerGoalHandle], Any]],
    ) -> None:
        """Let the executor run an execute callback, the server's if none is given."""
        if execute_callback is None:
            if self._execute_callback is None:
                return
            execute_callback = self._execute_callback
        executor = self._node.executor
        if executor is not None:
            with self._lock:
                goal_handle._executions += 1
            try:
                executor.create_task(self._execute_goal, execute_callback, goal_handle)
            except BaseException:
                with self._lock:
                    goal_handle._executions -= 1
                raise

    def register_handle_accepted_callback(
        self, handle_accepted_callback: Optional[Callable[[ServerGoalHandle], Any]],
    ) -> None:
        """Replace the callback of accepted goals; ``None`` stands for the default."""
        self._handle_accepted_callback = (
            handle_accepted_callback or default_handle_accepted_callback)

    def register_goal_callback(self, goal_callback: Optional[Callable[[Any], Any]]) -> None:
        """Replace the callback of new goals; ``None`` stands for the default."""
        self._goal_callback = goal_callback or default_goal_callback

    def register_cancel_callback(self, cancel_callback: Optional[Callable[[Any], Any]]) -> None:
        """Replace the callback of cancel requests; ``None`` stands for the default."""
        self._cancel_callback = cancel_callback or default_cancel_callback

    def register_execute_callback(
        self, execute_callback: Callable[[ServerGoalHandle], Any],
    ) -> None:
        """
        Replace the callback that executes goals.

        :raises TypeError: if it cannot be called.
        """
        if not callable(execute_callback):
            raise TypeError(
                f'Failed to register goal execution callback: {execute_callback!r} is not '
                'callable')
        self._execute_callback = execute_callback

    def destroy(self) -> None:
        """Destroy the server."""
        for goal_handle in list(self._goal_handles.values()):
            goal_handle.destroy()
        for handle in self._handles:
            handle.destroy_when_not_in_use()
        self._feedback_publisher.destroy_when_not_in_use()
        self._status_publisher.destroy_when_not_in_use()
        try:
            self._node.remove_waitable(self)
        except ValueError:
            # It was destroyed before.
            pass
