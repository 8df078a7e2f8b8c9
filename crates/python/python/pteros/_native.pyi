"""Native module of the wheel: contexts, entities, polling, messages, graph, logging.

`rclpy` is built on it. It is private: programs import `rclpy`.

Conventions that hold for every item:

* Times and durations are `int` nanoseconds. A duration of QoS is 0 for "not given"
  and `DURATION_INFINITE` for infinite.
* Enumerations are plain `int` with rmw's values, so an `IntEnum` passes as it is.
* Names are relative, private (`~`) or absolute; a node expands and remaps them.
* Message types are the classes themselves (`std_msgs.msg.String`).
* Every entity is a handle: `with handle:` keeps it alive, `destroy_when_not_in_use()`
  destroys it once no `with` block holds it. Entering it later, and every other method,
  raises `InvalidHandle`. Destroying twice is not an error. Dropping the last reference
  destroys it too. Children keep their node alive, nodes keep their context alive.
* All methods are thread-safe. Methods that wait or send release the GIL.
"""

from __future__ import annotations

from collections.abc import Buffer, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

_M = TypeVar("_M")

__version__: str
"""Version of Pteros, for example "0.1.0"."""

DURATION_INFINITE: int
"""RMW_DURATION_INFINITE: 9223372036854775807 ns."""

DURATION_BEST_AVAILABLE: int
"""RMW_QOS_DEADLINE_BEST_AVAILABLE: 9223372036854775806 ns."""

# --- exceptions -----------------------------------------------------------------------

class RCLError(RuntimeError):
    """A request to the middleware failed."""

class NodeNameNonExistentError(RCLError):
    """A graph query names a node that does not exist."""

class UnsupportedEventTypeError(RCLError):
    """The middleware has no event of that kind for that entity."""

class RCLInvalidROSArgsError(RCLError):
    """`--ros-args` could not be parsed."""

class UnknownROSArgsError(RCLError):
    """`--ros-args` has unknown options; attribute `unknown_args` lists them."""

class InvalidHandle(RuntimeError):
    """The entity was destroyed."""

class InvalidNameError(ValueError):
    """A topic, service, node or namespace name is invalid.

    Attributes: `kind` ("topic", "service", "node", "namespace"), `name`, `message`,
    `index` (of the first wrong character).
    """

    kind: str
    name: str
    message: str
    index: int

class NotInitializedError(RuntimeError):
    """The context is not initialized, or shut down; `rclpy` turns it into
    `NotInitializedException`."""

# --- QoS ------------------------------------------------------------------------------

class rmw_qos_profile_t:
    """A QoS profile. Values are rmw's: history 0 system default, 1 keep last, 2 keep
    all, 3 unknown; reliability 0 system default, 1 reliable, 2 best effort, 3 unknown,
    4 best available; durability 0 system default, 1 transient local, 2 volatile,
    3 unknown, 4 best available; liveliness 0 system default, 1 automatic, 3 manual by
    topic, 4 unknown, 5 best available."""

    def __init__(
        self,
        history: int = 1,
        depth: int = 10,
        reliability: int = 1,
        durability: int = 2,
        lifespan: int = 0,
        deadline: int = 0,
        liveliness: int = 0,
        liveliness_lease_duration: int = 0,
        avoid_ros_namespace_conventions: bool = False,
    ) -> None: ...
    def to_dict(self) -> dict[str, Any]:
        """All nine values by the names above."""
    def __eq__(self, other: object) -> bool: ...

def qos_policy_parameter(profile: rmw_qos_profile_t, policy: str) -> Any:
    """The value that a policy has as a QoS override parameter."""
def qos_check_compatible(
    offered: rmw_qos_profile_t, requested: rmw_qos_profile_t,
) -> tuple[int, str]:
    """0 (they match), 1 (a policy is left to the middleware) or 2 (they do not match), and
    the reasons."""

# --- contexts -------------------------------------------------------------------------

class Handle:
    """Base of every entity."""

    def __enter__(self) -> None:
        """Keeps the entity alive. InvalidHandle if it was destroyed."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def destroy_when_not_in_use(self) -> None:
        """Destroys the entity now, or when the last `with` block ends."""
    @property
    def pointer(self) -> int:
        """A number that is unique among living entities. InvalidHandle when destroyed."""
    @property
    def is_destroyed(self) -> bool: ...

class Context(Handle):
    """A context: one DDS participant. Opened by the constructor."""

    def __init__(
        self, args: Sequence[str] = (), domain_id: int | None = None
    ) -> None:
        """Parses `--ros-args` of `args` (a command line, with or without the program's
        name) and opens the participant. `domain_id` None: ROS_DOMAIN_ID.

        RCLInvalidROSArgsError, UnknownROSArgsError, RCLError (bad domain, ports)."""
    def ok(self) -> bool:
        """False once `shutdown` has begun. Never raises."""
    def shutdown(self) -> None:
        """Begins shutdown: waits return, entities of the context stay valid until they
        are destroyed. Runs the `on_shutdown` callbacks, once, on this thread.
        RCLError if it is shut down already."""
    def on_shutdown(self, callback: Callable[[], Any]) -> None:
        """Adds a callback of `shutdown`. A bound method is held weakly. Not run by
        signals."""
    def get_domain_id(self) -> int: ...
    @property
    def shutdown_reason(self) -> str:
        """"" while the context is open, else "user" or "signal"."""
    @property
    def non_ros_args(self) -> list[str]:
        """The arguments without `--ros-args … --`."""

def remove_ros_args(args: Sequence[str]) -> list[str]:
    """`args` without `--ros-args … --`. RCLInvalidROSArgsError, UnknownROSArgsError."""

# --- signals --------------------------------------------------------------------------

SIGNAL_HANDLERS_NO: int
"""0"""
SIGNAL_HANDLERS_SIGINT: int
"""1"""
SIGNAL_HANDLERS_SIGTERM: int
"""2"""
SIGNAL_HANDLERS_ALL: int
"""3"""

def install_signal_handlers(options: int = 3) -> None:
    """SIGINT and SIGTERM shut all contexts down, trigger the guard conditions given to
    `register_sigint_guard_condition`, wake all pollers, and then run the handler that
    was there before (so SIGINT also raises KeyboardInterrupt). Only in the main thread's
    process; a fork resets them."""

def uninstall_signal_handlers() -> None: ...
def get_current_signal_handlers_options() -> int: ...
def register_sigint_guard_condition(guard: GuardCondition) -> None:
    """Triggers `guard` at SIGINT and SIGTERM. Held weakly."""

def unregister_sigint_guard_condition(guard: GuardCondition) -> None: ...

# --- nodes ----------------------------------------------------------------------------

class Node(Handle):
    """A node."""

    def __init__(
        self,
        context: Context,
        name: str,
        namespace: str = "",
        args: Sequence[str] | None = None,
        use_global_arguments: bool = True,
        enable_rosout: bool = True,
    ) -> None:
        """`args`: arguments of this node, which precede the context's. Applies the
        remappings __node, __name and __ns. With `enable_rosout` the log lines of the
        node's logger are published on /rosout.

        InvalidNameError, NotInitializedError, RCLInvalidROSArgsError,
        UnknownROSArgsError."""
    def get_node_name(self) -> str:
        """After remapping, without namespace."""
    def get_namespace(self) -> str:
        """After remapping, absolute."""
    def get_fully_qualified_name(self) -> str: ...
    def logger_name(self) -> str:
        """Namespace and name with dots: "ns.name"."""
    def resolve_name(self, name: str, only_expand: bool = False, is_service: bool = False) -> str:
        """The full name, remapped unless `only_expand`. InvalidNameError."""
    def count_endpoints(self, role: str, name: str) -> int:
        """`role`: "publisher", "subscription", "service" or "client". `name`: a full name.
        InvalidNameError."""
    def get_node_names_and_namespaces(self) -> list[tuple[str, str]]: ...
    def get_node_names_and_namespaces_with_enclaves(self) -> list[tuple[str, str, str]]: ...
    def get_topic_names_and_types(self, no_demangle: bool = False) -> list[tuple[str, list[str]]]: ...
    def get_service_names_and_types(self) -> list[tuple[str, list[str]]]: ...
    def names_and_types_by_node(
        self, role: str, name: str, namespace: str, no_demangle: bool = False
    ) -> list[tuple[str, list[str]]]:
        """Of a node's endpoints. `role`: "publisher", "subscription", "service", "client",
        "action_client" or "action_server". RCLError for a wrong name,
        NodeNameNonExistentError."""
    def get_action_names_and_types(self) -> list[tuple[str, list[str]]]: ...
    def info_by_topic(self, publishers: bool, topic: str, no_mangle: bool) -> list[dict[str, Any]]:
        """One dict per publisher or subscription: node_name, node_namespace, topic_type
        (str), topic_type_hash (dict version: int, value: bytes of 32), endpoint_type (1
        publisher, 2 subscription), endpoint_gid (list of 16 int), qos_profile (dict as
        `rmw_qos_profile_t.to_dict`)."""

# --- entities -------------------------------------------------------------------------

class MessageInfo:
    """Meta data of a received message."""

    source_timestamp: int
    received_timestamp: int
    publication_sequence_number: int | None
    reception_sequence_number: int | None
    publisher_gid: bytes
    def to_dict(self) -> dict[str, int | None]:
        """The first four, as `(msg, info)` callbacks get them."""

class RawMessage:
    """A serialized message (CDR with its header) where it was received: a read-only
    buffer. `memoryview(raw)`, `bytes(raw)`, `numpy.frombuffer(raw, …)` and `len(raw)`
    work. The memory lives as long as the object or a view of it."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Publisher(Handle):
    def __init__(self, node: Node, msg_type: type, topic: str, qos: rmw_qos_profile_t) -> None:
        """InvalidNameError, TypeError (no message class), RCLError."""
    def publish(self, message: Any) -> None:
        """TypeError if `message` is not of the type, or a field has a wrong type (the
        text names the field). RCLError if it cannot be sent."""
    def publish_raw(self, payload: Buffer) -> None:
        """Publishes CDR with its header: bytes, bytearray, memoryview, array, numpy."""
    def get_topic_name(self) -> str:
        """Full, remapped."""
    def get_subscription_count(self) -> int: ...
    def assert_liveliness(self) -> None: ...
    def wait_for_all_acked(self, timeout_ns: int = -1) -> bool:
        """Negative: for ever. KeyboardInterrupt passes."""
    @property
    def gid(self) -> bytes: ...

class Subscription(Handle):
    def __init__(
        self,
        node: Node,
        msg_type: type,
        topic: str,
        qos: rmw_qos_profile_t,
        ignore_local_publications: bool = False,
        filter_expression: str | None = None,
        filter_parameters: Sequence[str] = (),
    ) -> None:
        """InvalidNameError, TypeError, RCLError (also for a bad filter)."""
    def take(self) -> tuple[Any, MessageInfo] | None:
        """The oldest message, or None. RCLError if the payload is not of the type: that
        message is gone."""
    def take_arguments(self, executor: Any, /) -> tuple[Any] | None:
        """As take, without the info: the arguments of a callback."""
    def take_raw(self) -> tuple[RawMessage, MessageInfo] | None: ...
    def is_ready(self) -> bool:
        """Whether `take` has something."""
    def get_topic_name(self) -> str: ...
    def get_publisher_count(self) -> int: ...
    def get_content_filter(self) -> tuple[str, list[str]] | None: ...
    def set_content_filter(self, expression: str, parameters: Sequence[str] = ()) -> None:
        """"" removes it. RCLError."""
    @property
    def is_cft_enabled(self) -> bool: ...

class RequestId:
    """The header of a request: the client, and the client's number of it."""

    client_gid: bytes
    sequence_number: int
    source_timestamp: int
    received_timestamp: int

class Client(Handle):
    def __init__(self, node: Node, srv_type: type, service: str, qos: rmw_qos_profile_t) -> None:
        """`srv_type` has Request and Response. InvalidNameError, TypeError, RCLError."""
    def send_request(self, request: Any) -> int:
        """Sends it and returns its number. Without a server it is lost. TypeError,
        RCLError."""
    def take_response(self) -> tuple[RequestId, Any] | None:
        """The oldest response to a request of this client; `sequence_number` is what
        `send_request` returned."""
    def forget_request(self, sequence_number: int) -> None:
        """A response to it will be dropped."""
    def is_ready(self) -> bool: ...
    def service_server_is_available(self) -> bool: ...
    def get_service_name(self) -> str: ...
    def configure_introspection(self, clock: Clock, qos: rmw_qos_profile_t, state: int) -> None:
        """Publishes events on `<service>/_service_event`: 0 off, 1 metadata,
        2 contents."""

class Service(Handle):
    def __init__(self, node: Node, srv_type: type, service: str, qos: rmw_qos_profile_t) -> None: ...
    def take_request(self) -> tuple[Any, RequestId] | None:
        """(request, header). 4096 requests may be open; the oldest is forgotten then."""
    def send_response(self, response: Any, header: RequestId) -> None:
        """Once per request. TypeError; RCLError if it is not open."""
    def is_ready(self) -> bool: ...
    def get_service_name(self) -> str: ...
    def configure_introspection(self, clock: Clock, qos: rmw_qos_profile_t, state: int) -> None: ...

class GuardCondition(Handle):
    def __init__(self, context: Context) -> None: ...
    def trigger_guard_condition(self) -> None:
        """Wakes every poller that has it. From any thread."""
    def is_triggered(self) -> bool:
        """Does not take the trigger; `Poller.wait` does."""

def graph_guard_condition(node: Node) -> GuardCondition:
    """Triggered at every change of the graph. One per call."""

class EventHandle(Handle):
    """One kind of status of a publisher or subscription.

    Kinds are rcl's. Subscription: 0 REQUESTED_DEADLINE_MISSED, 1 LIVELINESS_CHANGED,
    2 REQUESTED_INCOMPATIBLE_QOS, 3 MESSAGE_LOST, 4 INCOMPATIBLE_TYPE, 5 MATCHED.
    Publisher: 0 OFFERED_DEADLINE_MISSED, 1 LIVELINESS_LOST, 2 OFFERED_INCOMPATIBLE_QOS,
    3 INCOMPATIBLE_TYPE, 4 MATCHED."""

    def __init__(self, entity: Publisher | Subscription, kind: int) -> None:
        """UnsupportedEventTypeError."""
    def is_ready(self) -> bool: ...
    def take_event(self) -> EventStatus | None:
        """The status; its changes count from the last take."""

class EventStatus:
    """A status. Attributes by kind:

    deadline, liveliness lost, incompatible type: total_count, total_count_change ·
    incompatible QoS: and last_policy_kind (rmw_qos_policy_kind_t) · liveliness changed:
    alive_count, not_alive_count, alive_count_change, not_alive_count_change · matched:
    total_count, total_count_change, current_count, current_count_change · message lost:
    total_count, total_count_change. Others raise AttributeError."""

    name: str
    """For example "requested_deadline_missed"."""
    total_count: int
    total_count_change: int
    current_count: int
    current_count_change: int
    alive_count: int
    alive_count_change: int
    not_alive_count: int
    not_alive_count_change: int
    last_policy_kind: int

# --- time -----------------------------------------------------------------------------

CLOCK_ROS: int
"""1, ClockType.ROS_TIME"""
CLOCK_SYSTEM: int
"""2, ClockType.SYSTEM_TIME"""
CLOCK_STEADY: int
"""3, ClockType.STEADY_TIME"""

class Clock(Handle):
    def __init__(self, clock_type: int) -> None: ...
    def now(self) -> int: ...
    @property
    def clock_type(self) -> int: ...
    def get_ros_time_override_is_enabled(self) -> bool:
        """RCLError unless it is a ROS clock, here and below."""
    def set_ros_time_override_is_enabled(self, enabled: bool) -> None:
        """Calls the jump callbacks; wakes pollers that have a timer of this clock."""
    def set_ros_time_override(self, nanoseconds: int) -> None:
        """Simulated time; as above."""
    def add_clock_callback(
        self,
        pre_callback: Callable[[], Any] | None,
        post_callback: Callable[[dict[str, int]], Any] | None,
        on_clock_change: bool,
        min_forward: int,
        min_backward: int,
    ) -> int:
        """Adds a jump callback and returns its id. `min_forward` 0 and `min_backward` 0
        (which is else negative) are off. `post_callback` gets {"clock_change": 1 no
        change, 2 activated, 3 deactivated, 4 system time no change; "delta": ns}."""
    def remove_clock_callback(self, callback_id: int) -> None: ...
    def sleep_until(self, until_ns: int, context: Context) -> bool:
        """False if the context was shut down, or ROS time was switched on or off,
        before. Releases the GIL; KeyboardInterrupt passes."""

class TransformMiss(Exception):
    """Why a look-up of transforms failed: tf2's exception and its text."""

    args: tuple[str, str]

class Synchronizer:
    """Joins messages of several inputs: ``exact`` or ``slop``. Thread-safe."""

    def __init__(
        self, policy: str, inputs: int, queue_size: int, slop_ns: int = 0) -> None: ...
    def add(self, input: int, stamp_ns: int, message: object) -> list[tuple[Any, ...]]:
        """Add a message; return the sets that are complete now."""

    def clear(self) -> None: ...

class MessageCache:
    """The last messages of an input, by stamp in nanoseconds. Thread-safe."""

    def __init__(self, size: int) -> None: ...
    def add(self, stamp_ns: int, message: object) -> None: ...
    def interval(self, from_ns: int, to_ns: int) -> list[Any]: ...
    def before(self, time_ns: int) -> Any: ...
    def after(self, time_ns: int) -> Any: ...
    def first(self) -> tuple[int, Any] | None: ...
    def last(self) -> tuple[int, Any] | None: ...
    def messages(self) -> list[tuple[int, Any]]: ...
    def clear(self) -> None: ...

class TransformBuffer:
    """The transform buffer of the Rust library. Times are in nanoseconds; thread-safe."""

    def __init__(self, cache_ns: int, frames_max: int | None = None) -> None: ...
    def set_transform(
        self,
        parent: str,
        child: str,
        stamp_ns: int,
        translation: tuple[float, float, float],
        rotation: tuple[float, float, float, float],
        authority: str,
        is_static: bool,
    ) -> str | None:
        """Returns why it was rejected, or None."""
    def lookup(
        self, target: str, source: str, stamp_ns: int
    ) -> tuple[tuple[tuple[float, float, float], tuple[float, float, float, float]], int]:
        """The pose of the source in the target, and its time. TransformMiss if there is none."""
    def lookup_full(
        self, target: str, target_ns: int, source: str, source_ns: int, fixed: str
    ) -> tuple[tuple[tuple[float, float, float], tuple[float, float, float, float]], int]:
        """The same from the source at one time to the target at another one."""
    def latest_common_time(self, target: str, source: str) -> int:
        """0 if all transforms of the path are static. TransformMiss without a path."""
    def has_frame(self, name: str) -> bool: ...
    def frame_names(self) -> list[str]:
        """In the order in which transforms named them first."""
    def frames(self) -> list[tuple[str, str, bool, int, int, int, str]]:
        """Name, parent, whether static, oldest and newest time, transforms, broadcaster."""
    def clear(self) -> None:
        """Removes all but static transforms."""

class Timer(Handle):
    """A timer as rcl's. Add it to a poller, which sleeps no longer than it allows."""

    def __init__(self, clock: Clock, context: Context, period_ns: int, autostart: bool = True) -> None:
        """RCLError for a negative period, and once the context is shut down."""
    def is_ready(self) -> bool:
        """Due and not canceled."""
    def take_due(self, executor: Any, /) -> tuple[()] | None:
        """Schedules the next call if it is due: the arguments of the callback, or None."""
    def call_timer(self) -> int:
        """Schedules the next call; missed periods are skipped. Returns the time of call
        minus the time that was expected. RCLError if it is canceled."""
    def take_due_with_info(self) -> tuple[int, int] | None:
        """As ``take_due``; the expected and the actual time, or None."""
    def call_timer_with_info(self) -> tuple[int, int]:
        """As call_timer; returns (expected_call_time, actual_call_time)."""
    def cancel_timer(self) -> None: ...
    def reset_timer(self) -> None: ...
    def is_timer_canceled(self) -> bool: ...
    def time_since_last_call(self) -> int: ...
    def time_until_next_call(self) -> int | None:
        """None when canceled."""
    def get_timer_period(self) -> int: ...
    def change_timer_period(self, period_ns: int) -> None: ...

# --- waiting --------------------------------------------------------------------------

Waitable = Subscription | Client | Service | GuardCondition | EventHandle | Timer

class GroupLock:
    """The lock of a mutually exclusive callback group. It never blocks."""

    def __init__(self) -> None: ...
    def acquire(self) -> bool:
        """False if it is taken."""
    def release(self) -> None:
        """From any thread. RuntimeError if it is not taken."""
    def locked(self) -> bool: ...

class StateMachine:
    """The state of a lifecycle node, and the transitions that are possible. A transition is
    its number and label, and those of its start and goal state."""

    def __init__(self) -> None: ...
    @property
    def current_state(self) -> tuple[int, str]: ...
    @property
    def available_states(self) -> list[tuple[int, str]]: ...
    @property
    def available_transitions(self) -> list[tuple[int, str, int, str, int, str]]:
        """Those from this state."""
    @property
    def transition_graph(self) -> list[tuple[int, str, int, str, int, str]]:
        """All transitions."""
    def get_transition_by_label(self, label: str) -> int:
        """RCLError if this state has none."""
    def make_transition(self, transition_id: int) -> tuple[int, str, int, str, int, str]:
        """RCLError if this state has none."""

class GoalTable:
    """The goals of an action server. Times are nanoseconds of the node's clock."""

    def __init__(self, result_timeout: int) -> None: ...
    def contains(self, id: bytes) -> bool: ...
    def accept(self, id: bytes, stamp: int) -> tuple[bool, bytes | None]:
        """False if the id is in use, or all goals of the full table are active. Also the goal
        that was dropped: the one that ended first, if the table was full."""
    def status(self, id: bytes) -> int:
        """0 for a goal that is not in the table."""
    def transition(self, id: bytes, target: int, now: int) -> None:
        """RCLError if the goal state machine has no such transition."""
    def select_for_cancel(self, id: bytes, stamp: int) -> tuple[int, list[bytes]]:
        """The return code, and the goals that a cancel request selects."""
    def next_expiry(self) -> int | None: ...
    def expire(self, now: int) -> list[bytes]:
        """Removes the goals whose results have expired, and returns them."""

class ParameterStore:
    """The declared parameters of a node, by the rules of rclpy.

    `node`, here and below, is the node of rclpy, whose callbacks and event publisher a
    change calls. Their exceptions end the change and are raised. Errors are those of
    `rclpy.exceptions`; ValueError: an integer has more than 64 bits."""

    def __init__(
        self, node: Node, overrides: Iterable[Any], allow_undeclared: bool,
        declare_from_overrides: bool,
    ) -> None:
        """`overrides`: parameters that precede those of arguments and parameter files.
        RCLError names a bad file."""
    def overrides(self) -> dict[str, Any]:
        """The overrides as parameters, whose types no declaration has decided yet."""
    def declare_overrides(self, node: Any) -> None:
        """Declares the overrides, if the node does so."""
    def declare(self, node: Any, parameter: Any, descriptor: Any, ignore_override: bool) -> Any:
        """Declares a parameter with its default, and returns it with its value."""
    def override_qos(
        self, node: Any, topic: str, endpoint: tuple[bool, str], policies: list[str],
        profile: rmw_qos_profile_t,
    ) -> dict[str, Any]:
        """Declares the QoS override parameters of an endpoint, and returns its policies by
        name with their values in place. `endpoint`: whether it is a publisher, and its id.
        RCLError names a refused value."""
    def undeclare(self, name: str) -> None: ...
    def set_atomically(self, node: Any, parameters: list[Any]) -> Any:
        """Sets all or none, and returns a SetParametersResult."""
    def has(self, name: str) -> bool: ...
    def get(self, name: str) -> Any: ...
    def get_if_set(self, name: str) -> Any | None:
        """None if it is not declared or has no value."""
    def with_prefix(self, prefix: str) -> list[Any]:
        """The parameters whose names begin with `prefix`, in the order of declaration."""
    def type_of(self, name: str) -> int: ...
    def describe(self, name: str) -> Any: ...
    def set_descriptor(self, name: str, descriptor: Any, alternative: Any | None) -> Any:
        """Replaces a descriptor, and returns the parameter. `alternative` has the value
        that it takes if the descriptor rejects the present one."""
    def list(self, prefixes: Sequence[str], depth: int) -> Any:
        """A ListParametersResult."""
    def answer(self, node: Any, service: str, request: Any, response: type) -> Any:
        """The response of class `response` to a request of a parameter service."""

class Poller:
    """The entities of an executor, and the thread that polls the sockets for them.

    `wait` runs the protocol itself: a message costs one wake-up and no hop between
    threads. Several pollers of a context may wait at once. An entity wakes the poller
    that waited for it last."""

    def __init__(self, context: Context) -> None: ...
    def add(self, entity: Waitable) -> None:
        """Wakes a wait in progress. Adding twice counts once. InvalidHandle."""
    def remove(self, entity: Waitable) -> None:
        """Destroyed entities leave by themselves. Unknown ones are ignored."""
    def set_entities(self, entities: Iterable[Waitable]) -> None:
        """Replaces all. Cheap if they are the same as before."""
    def clear(self) -> None: ...
    def wait(self, timeout_ns: int | None = None) -> list[Waitable]:
        """The ready entities in the order in which they were added; empty on timeout,
        at `wake`, and when the context is shut down. None or negative: for ever. 0:
        polls. Takes the triggers of guard conditions. KeyboardInterrupt passes."""
    def spin(self, executor: Any) -> Any:
        """Waits and runs the callbacks of `SingleThreadedExecutor` and its entries, until
        something else is to be done. Returns None for a turn of the executor's own, False
        if the context was shut down during a wait, and an entry with the coroutine that
        its callback has returned. Exceptions of callbacks pass; the rest of what is ready
        goes into the executor's queue."""
    def spin_once(self, executor: Any, timeout_ns: int | None = None) -> Any:
        """As `spin`, for one callback. Returns True if it has run or the timeout has
        passed."""
    def wake(self) -> None:
        """Ends the wait in progress, or the next one. From any thread."""
    def fileno(self) -> int:
        """A descriptor for an external event loop, to be polled for reading and not to be
        read. It is readable when `wait(0)` has something to do, after `arm`."""
    def arm(self) -> bool:
        """Prepares the sleep of the external event loop; each `wait` ends it. False if
        there is something to do. Call it in the thread of the loop, after `wait(0)`."""
    def close(self) -> None:
        """Gives the sockets back to the background thread; later waits return []."""

# --- messages -------------------------------------------------------------------------

def get_message_class(type_name: str) -> type:
    """"std_msgs/msg/String" → the class. Also "…/srv/X" (with Request, Response, Event)
    and "…/action/X" (with Goal, Result, Feedback, Impl). LookupError names near ones."""

def get_type_name(cls: type) -> str:
    """"std_msgs/msg/String"; "pkg/srv/Add_Request" for parts. TypeError."""

def get_type_hash(cls: type) -> str:
    """"RIHS01_…", of a message, service or action class."""

def get_interface_packages() -> list[str]: ...
def get_interfaces(package: str) -> list[str]:
    """"msg/String", "srv/Empty", "action/Fibonacci". LookupError."""

def get_interface_definition(type_name: str) -> str:
    """The text of its .msg, .srv or .action file."""

def serialize_message(message: Any) -> bytes:
    """CDR with its header. TypeError."""

def deserialize_message(payload: Buffer, cls: type[_M]) -> _M:
    """RCLError if the payload is not of the type."""

def is_message_class(cls: object) -> bool: ...
def is_service_class(cls: object) -> bool: ...
def is_action_class(cls: object) -> bool: ...
def get_type_description(node: Node, type_name: str, type_hash: str, include_sources: bool) -> Any:
    """A filled `type_description_interfaces.srv.GetTypeDescription.Response`."""

# --- names ----------------------------------------------------------------------------

def expand_topic_name(topic: str, node_name: str, namespace: str) -> str:
    """InvalidNameError."""

def validate_full_topic_name(name: str, is_service: bool = False) -> tuple[str, int] | None:
    """None, or (message, index of the first wrong character); here and below."""

def validate_topic_name(name: str, is_service: bool = False) -> tuple[str, int] | None: ...
def validate_node_name(name: str) -> tuple[str, int] | None: ...
def validate_namespace(name: str) -> tuple[str, int] | None: ...
def remap_topic_name(node: Node, topic: str) -> str:
    """Of a full name."""

# --- parameter files ------------------------------------------------------------------

def parse_parameter_file(path: str, node_name: str | None = None, use_wildcard: bool = False) -> dict[str, dict[str, Any]]:
    """Node name or pattern → parameters. RCLError names file and line."""


def load_yaml(text: str) -> Any:
    """
    The value of a document by YAML 1.1; ``None`` if it is empty.

    :raises ValueError: names line and column of what is no YAML.
    """


def read_plain_scalar(text: str, as_rcl: bool = False) -> Any:
    """The value of a scalar without quotes, by YAML 1.1 or by rcl's parser."""

# --- launch ---------------------------------------------------------------------------

def parse_template(text: str) -> list[Any]:
    """
    The parts of a text with substitutions: strings, and tuples of a name and a list of
    arguments, each of which is a list of parts.

    :raises ValueError: names what is wrong, and the column.
    """

def split_words(line: list[str | None]) -> list[list[str | int]]:
    """
    The words of a command line, as a shell splits them. A part that is ``None`` is never
    split; its index stands for it.

    :raises ValueError: if a quote is not closed.
    """

def typed_launch_value(text: str, kind: str) -> Any:
    """
    The value of a text as 'str', 'bool', 'int', 'float', 'list_of_int' … or 'yaml'.

    :raises ValueError: if it is not of the type.
    """

def yaml_of_parameter(value: Any, written: str | None = None) -> str:
    """
    A value for ``-p`` and parameter files, on one line: as written, if a node reads that as
    this value.

    :raises TypeError: if no parameter can have it.
    """

def node_parameter_arguments(
    node: str | None, sources: list[tuple[str, str, str]]
) -> list[tuple[str | None, str]]:
    """
    The arguments of a node for its parameters: flag and word. The word of the flag ``None``
    is the text of a file to write. A source is ``('argument', name, yaml)``,
    ``('value', name, yaml)`` or ``('file', path, '')``.
    """

class LaunchGuard:
    """Marks the processes of a launch, knows their process groups, and ends those that are
    left. A watchdog process does so if this process is killed."""

    def __init__(self, launch_id: str) -> None:
        """`launch_id` is that of no other launch."""
    launch_id: str
    def mark(self, outer: str | None) -> tuple[str, str]:
        """The environment variable that marks processes, and its value in a process where it
        is `outer`."""
    def start_watchdog(self, words: Sequence[str]) -> None:
        """Starts the watchdog, unless it runs. The command runs `run_launch_watchdog`.
        OSError."""
    has_watchdog: bool
    def set_folder(self, folder: str) -> None:
        """Names the folder of temporary files, which the watchdog deletes."""
    def add_leader(self, pid: int) -> None:
        """Adds a process that leads a group; those that it starts may lose the mark."""
    def remove_leader(self, pid: int) -> None:
        """Removes a leader that has ended and was waited for."""
    def end_processes(self) -> int:
        """Ends the processes by SIGTERM and SIGKILL, and returns how many are left. Blocks
        for at most 4 s."""
    def finish(self) -> None:
        """Ends the watchdog. Blocks for at most 2 s."""

def run_launch_watchdog(launch_id: str) -> None:
    """The body of the watchdog process. Its standard input is a pipe of the launcher."""

class OutputLines:
    """Splits the output of a process into lines. What is not UTF-8 is replaced."""

    def push(self, bytes: bytes) -> list[str]:
        """Adds bytes, and returns the whole lines without their ends. A line over 1 MiB
        comes in parts."""
    def take_rest(self) -> str | None:
        """Takes what is not a whole line."""

def stop_escalation(
    process: str, sigterm_timeout: float, sigkill_timeout: float,
) -> list[tuple[str, float, str]]:
    """The signals of a process that does not end after SIGINT: name, seconds after SIGINT and
    log line. A negative time-out is 0, and one that is too large is endless."""

class RespawnBackoff:
    """Whether and when a process that has ended by itself starts again."""

    def __init__(self, delay: float, retries_max: int) -> None:
        """Of a delay in seconds, and the largest number of starts; below 0 for any number."""
    def next_delay(self, ran: float) -> float | None:
        """The seconds to wait after a run of so many; ``None`` if it does not start again."""

class LaunchCommand:
    """A command that leads a process group and runs without input."""

    def __init__(
        self, words: list[str], environment: dict[str, str], merges_stderr: bool,
        bytes_max: int, timeout: float,
    ) -> None:
        """
        Starts it, with a whole environment and limits of its output and its seconds.

        :raises OSError: if it cannot be started.
        """
    @property
    def pid(self) -> int: ...
    def wait(self, most: float) -> tuple[int, bytes, bytes] | None:
        """
        The exit code, or the negative number of a signal, stdout and stderr; ``None`` if it
        has not ended after so many seconds.

        :raises TimeoutError: if its time is over.
        :raises BufferError: if it has written too much.
        """
    def end(self, timeout: float) -> None:
        """Ends it and its group: SIGTERM, and SIGKILL after so many seconds."""

def find_package(
    name: str, command: str | None = None, cargo_target: str | None = None
) -> tuple[Path, Path]:
    """
    The prefix and the share folder of a package.

    :param command: The program that has started this Python.
    :param cargo_target: The build folder of Cargo.
    :raises LookupError: names similar packages.
    """

def find_program(
    package: str, name: str, command: str | None = None, cargo_target: str | None = None
) -> tuple[Path, list[str]]:
    """
    The path of a package's program, and the arguments that precede the caller's: none, but
    for a built-in node; see :func:`find_package`.

    :raises LookupError: says why there is none.
    """

# --- logging --------------------------------------------------------------------------

def log(
    name: str, severity: int, message: str, function: str = "", file: str = "", line: int = 0
) -> None:
    """Writes a line to the console, the log file and, for a node's logger, /rosout,
    whether or not the severity is enabled. Severities: 10 20 30 40 50."""

def set_logger_level(name: str, level: int) -> None:
    """0 unsets it. "" is the root logger."""

def get_logger_level(name: str) -> int:
    """0 if unset."""

def get_logger_effective_level(name: str) -> int: ...
def is_logger_enabled_for(name: str, severity: int) -> bool: ...
def get_logging_directory() -> str: ...
def configure_logging(context: Context) -> None:
    """Applies the log arguments of the context: levels, outputs. `rclpy.init` calls it."""

# --- identity -------------------------------------------------------------------------

def get_rmw_implementation_identifier() -> Literal["rmw_pteros_cpp"]: ...
