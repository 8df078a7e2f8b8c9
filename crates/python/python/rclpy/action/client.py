"""Clients of actions."""

from __future__ import annotations

import os
import threading
import time
import weakref

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.impl.errors import InvalidHandle, RCLError
from rclpy.impl.node_entity import Generic
from rclpy.qos import (
    QoSProfile, qos_profile_action_status_default, qos_profile_services_default,
)
from rclpy.task import Future
from rclpy.type_support import check_is_valid_action_type
from rclpy.waitable import NumberOfEntities, StaticWaitable
from unique_identifier_msgs.msg import UUID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

    from rclpy.callback_groups import CallbackGroup
    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)

_TERMINAL = (
    GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED)
_SERVER_POLL_S = 0.02
"""Time between two looks for a server. Discovery itself takes longer."""


class ClientGoalHandle(Generic):
    """A goal that was sent."""

    def __init__(self, action_client: ActionClient, goal_id: UUID, goal_response: Any) -> None:
        self._action_client = action_client
        self._goal_id = goal_id
        self._goal_response = goal_response
        self._status = GoalStatus.STATUS_UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientGoalHandle) and self._goal_id == other._goal_id

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (f'ClientGoalHandle <id={bytes(self._goal_id.uuid).hex()}, '
                f'accepted={self.accepted}, status={self._status}>')

    @property
    def goal_id(self) -> UUID:
        """The id of the goal."""
        return self._goal_id

    @property
    def stamp(self) -> Any:
        """The time at which the server decided, a ``builtin_interfaces/msg/Time``."""
        return self._goal_response.stamp

    @property
    def accepted(self) -> bool:
        """Whether the server accepted the goal."""
        return self._goal_response.accepted

    @property
    def status(self) -> int:
        """The last status that is known, of ``action_msgs/msg/GoalStatus``."""
        return self._status

    def cancel_goal(self) -> Any:
        """Cancel the goal and wait for the response. Another thread must spin the node."""
        return self._action_client._cancel_goal(self)

    def cancel_goal_async(self) -> Future:
        """Cancel the goal; the future has a ``CancelGoal.Response``."""
        return self._action_client._cancel_goal_async(self)

    def get_result(self) -> Any:
        """Wait for the result and its status. Another thread must spin the node."""
        return self._action_client._get_result(self)

    def get_result_async(self) -> Future:
        """Return a future of the result (``.result``) and its status (``.status``)."""
        return self._action_client._get_result_async(self)


def create_endpoints(
    node: Node, action_type: Any, action_name: str, service: Any, topic: Any,
    qos_profiles: Iterable[QoSProfile],
) -> Tuple[str, List[Any]]:
    """
    Create the clients or servers of an action and the endpoints of its topics.

    :param service, topic: The classes of the three services and of the two topics.
    :raises ValueError: as rclpy does, if they cannot be created.
    :returns: The action's full name, and them.
    """
    impl = action_type.Impl
    parts = (
        (service, impl.SendGoalService, 'send_goal'),
        (service, impl.CancelGoalService, 'cancel_goal'),
        (service, impl.GetResultService, 'get_result'),
        (topic, impl.FeedbackMessage, 'feedback'), (topic, impl.GoalStatusMessage, 'status'))
    try:
        with node.handle:
            name = node._resolve(action_name, False, is_service=False)
            return name, [
                create(node.handle, of_type, f'{name}/_action/{part}', _c_qos(profile))
                for (create, of_type, part), profile in zip(parts, qos_profiles)]
    except RCLError as error:
        kind = 'client' if service is _native.Client else 'server'
        raise ValueError(f'Failed to create action {kind} {action_name!r}: {error}') from None


class ActionClient(StaticWaitable):
    """Sends goals to an action server."""

    def __init__(
        self, node: Node, action_type: Any, action_name: str, *,
        callback_group: Optional[CallbackGroup] = None,
        goal_service_qos_profile: QoSProfile = qos_profile_services_default,
        result_service_qos_profile: QoSProfile = qos_profile_services_default,
        cancel_service_qos_profile: QoSProfile = qos_profile_services_default,
        feedback_sub_qos_profile: QoSProfile = QoSProfile(depth=10),
        status_sub_qos_profile: QoSProfile = qos_profile_action_status_default,
    ) -> None:
        """
        Create a client.

        :param node: The node that owns the client.
        :param action_type: The action class.
        :param action_name: The action.
        :param callback_group: The group in which responses and feedback are handled.
        :raises ValueError: if the name is invalid, or the context is shut down.
        """
        if callback_group is None:
            callback_group = node.default_callback_group
        check_is_valid_action_type(action_type)
        self._node = node
        self._action_type = action_type
        self._action_name = action_name
        name, self._handles = create_endpoints(
            node, action_type, action_name, _native.Client, _native.Subscription,
            (goal_service_qos_profile, cancel_service_qos_profile, result_service_qos_profile,
             feedback_sub_qos_profile, status_sub_qos_profile))
        (self._goal_client, self._cancel_client, self._result_client, self._feedback_sub,
         self._status_sub) = self._handles
        self._resolved_name = name
        super().__init__(callback_group)
        self._lock = threading.Lock()
        # Goals whose handles users hold, for their status; by id.
        self._goal_handles: Dict[bytes, Any] = {}
        self._pending_goal_requests: Dict[int, Future] = {}
        self._goal_sequence_number_to_goal_id: Dict[int, UUID] = {}
        self._pending_cancel_requests: Dict[int, Future] = {}
        self._pending_result_requests: Dict[int, Future] = {}
        self._result_sequence_number_to_goal_id: Dict[int, UUID] = {}
        self._feedback_callbacks: Dict[bytes, Callable[[Any], Any]] = {}
        self._logger = node.get_logger().get_child('action_client')
        node.add_waitable(self)

    def _static_handles(self) -> Any:
        return self._handles

    def get_num_entities(self) -> NumberOfEntities:
        """Return the three clients and two subscriptions of the action."""
        return NumberOfEntities(num_subs=2, num_clients=3)

    # --- what comes in

    def _take_handle(self, handle: Any, executor: Any) -> Any:
        if handle is self._feedback_sub:
            return self._take_feedback()
        if handle is self._status_sub:
            taken = handle.take()
            return None if taken is None else (self._handle_status, (taken[0],))
        taken = handle.take_response()
        if taken is None:
            return None
        header, response = taken
        number = header.sequence_number
        if handle is self._goal_client:
            pending = self._pending_goal_requests
            respond: Any = self._handle_goal_response
        elif handle is self._cancel_client:
            pending, respond = self._pending_cancel_requests, self._handle_response
        else:
            pending, respond = self._pending_result_requests, self._handle_result
        with self._lock:
            future = pending.get(number)
        if future is None:
            self._logger.debug(
                f'ignoring a response of action {self._action_name!r} to a request that is not '
                'pending')
            return None
        if executor is not None:
            future._set_executor(executor)
        return respond, (number, future, response)

    def _take_feedback(self) -> Any:
        taken = self._feedback_sub.take()
        if taken is None:
            return None
        callback = self._feedback_callbacks.get(bytes(taken[0].goal_id.uuid))
        # Feedback of other clients' goals arrives as well.
        return None if callback is None else (callback, (taken[0],))

    def _handle_result(self, number: int, future: Future, response: Any) -> None:
        """Hand out the feedback that came before the result, then the result."""
        while (taken := self._feedback_sub.take()) is not None:
            callback = self._feedback_callbacks.get(bytes(taken[0].goal_id.uuid))
            if callback is not None:
                callback(taken[0])
        future.set_result(response)

    def _handle_goal_response(self, number: int, future: Future, response: Any) -> None:
        with self._lock:
            goal_id = self._goal_sequence_number_to_goal_id.get(number)
        if goal_id is None:
            return
        goal_handle = ClientGoalHandle(self, goal_id, response)
        if goal_handle.accepted:
            key = bytes(goal_id.uuid)
            with self._lock:
                if key in self._goal_handles:
                    raise RuntimeError(f'Two goals were accepted with the same ID ({goal_handle})')
                self._goal_handles[key] = weakref.ref(goal_handle)
        else:
            self._feedback_callbacks.pop(bytes(goal_id.uuid), None)
        future.set_result(goal_handle)

    def _handle_response(self, number: int, future: Future, response: Any) -> None:
        future.set_result(response)

    def _handle_status(self, message: Any) -> None:
        for status in message.status_list:
            key = bytes(status.goal_info.goal_id.uuid)
            with self._lock:
                reference = self._goal_handles.get(key)
                if reference is None:
                    continue
                goal_handle = reference()
                if goal_handle is None or status.status in _TERMINAL:
                    del self._goal_handles[key]
            if goal_handle is not None:
                goal_handle._status = status.status

    # --- what goes out

    def _generate_random_uuid(self) -> UUID:
        random = bytearray(os.urandom(16))
        # Version 4, variant 1.
        random[6] = random[6] & 0x0F | 0x40
        random[8] = random[8] & 0x3F | 0x80
        return UUID(uuid=list(random))

    def _send(self, client: Any, request: Any, pending: Dict[int, Future], *maps: Any) -> Future:
        future = Future()
        # The lock keeps a response from overtaking the registration of its request.
        with self._lock:
            try:
                number = client.send_request(request)
            except InvalidHandle as error:
                raise self._unusable(error) from None
            if number in pending:
                raise RuntimeError(f'Sequence ({number}) conflicts with pending request')
            pending[number] = future
            for by_number in maps:
                by_number[number] = request.goal_id

        def forget() -> None:
            with self._lock:
                pending.pop(number, None)
                for by_number in maps:
                    by_number.pop(number, None)

        future._add_waker(forget)
        return future

    def _wait(self, future: Future) -> Any:
        event = threading.Event()
        if future._add_waker(event.set):
            event.wait()
        return future.result()

    def send_goal(self, goal: Any, **kwargs: Any) -> Any:
        """
        Send a goal and wait for its result. Another thread must spin the node.

        :param goal: A goal of the action's type.
        :param kwargs: The keywords of :meth:`send_goal_async`.
        :returns: the result (``.result``) and its status (``.status``).
        :raises TypeError: if the goal is of another type.
        """
        return self._get_result(self._wait(self.send_goal_async(goal, **kwargs)))

    def send_goal_async(
        self, goal: Any, feedback_callback: Optional[Callable[[Any], Any]] = None,
        goal_uuid: Optional[UUID] = None,
    ) -> Future:
        """
        Send a goal.

        :param goal: A goal of the action's type.
        :param feedback_callback: Gets the feedback messages of the goal.
        :param goal_uuid: The goal's id; ``None`` stands for a random one.
        :returns: a future of a :class:`ClientGoalHandle`.
        :raises TypeError: if the goal is of another type.
        """
        if not isinstance(goal, self._action_type.Goal):
            raise TypeError(f'expected a goal of type {self._action_type.Goal}, got {type(goal)}')
        request = self._action_type.Impl.SendGoalService.Request()
        request.goal_id = self._generate_random_uuid() if goal_uuid is None else goal_uuid
        request.goal = goal
        if feedback_callback is not None:
            self._feedback_callbacks[bytes(request.goal_id.uuid)] = feedback_callback
        return self._send(
            self._goal_client, request, self._pending_goal_requests,
            self._goal_sequence_number_to_goal_id)

    def _check(self, goal_handle: Any) -> None:
        if not isinstance(goal_handle, ClientGoalHandle):
            raise TypeError(f'Expected type ClientGoalHandle but received {type(goal_handle)}')

    def _cancel_goal(self, goal_handle: ClientGoalHandle) -> Any:
        self._check(goal_handle)
        return self._wait(self._cancel_goal_async(goal_handle))

    def _cancel_goal_async(self, goal_handle: ClientGoalHandle) -> Future:
        self._check(goal_handle)
        request = CancelGoal.Request()
        request.goal_info.goal_id = goal_handle.goal_id
        return self._send(self._cancel_client, request, self._pending_cancel_requests)

    def _get_result(self, goal_handle: ClientGoalHandle) -> Any:
        self._check(goal_handle)
        return self._wait(self._get_result_async(goal_handle))

    def _get_result_async(self, goal_handle: ClientGoalHandle) -> Future:
        self._check(goal_handle)
        request = self._action_type.Impl.GetResultService.Request()
        request.goal_id = goal_handle.goal_id
        future = self._send(
            self._result_client, request, self._pending_result_requests,
            self._result_sequence_number_to_goal_id)
        key = bytes(goal_handle.goal_id.uuid)
        # No feedback comes after the result.
        future._add_waker(lambda: self._feedback_callbacks.pop(key, None))
        return future

    def _unusable(self, error: InvalidHandle) -> RCLError:
        return RCLError(f'action client {self._action_name!r}: {error}')

    def server_is_ready(self) -> bool:
        """
        Return whether a server is there.

        :raises RCLError: if the client was destroyed, or the context is shut down.
        """
        with self._node.handle:
            try:
                return (
                    all(client.service_server_is_available() for client in self._handles[:3])
                    and self._feedback_sub.get_publisher_count() > 0
                    and self._status_sub.get_publisher_count() > 0)
            except InvalidHandle as error:
                raise self._unusable(error) from None

    def wait_for_server(self, timeout_sec: Optional[float] = None) -> bool:
        """
        Wait until a server is there.

        :param timeout_sec: Longest wait; ``None`` stands for "for ever".
        :returns: whether one is there.
        :raises RCLError: if the client was destroyed, or the context is shut down.
        """
        deadline = None if timeout_sec is None else time.monotonic() + timeout_sec
        while self._node.context.ok() and not self.server_is_ready():
            pause = _SERVER_POLL_S
            if deadline is not None:
                pause = min(pause, deadline - time.monotonic())
                if pause <= 0:
                    break
            time.sleep(pause)
        return self.server_is_ready()

    def destroy(self) -> None:
        """Destroy the client."""
        for handle in self._handles:
            handle.destroy_when_not_in_use()
        try:
            self._node.remove_waitable(self)
        except ValueError:
            # It was destroyed before.
            pass


def _c_qos(profile: QoSProfile) -> Any:
    return _native.rmw_qos_profile_t(*profile._native())
