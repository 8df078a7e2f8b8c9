"""rclpy within one process: every kind of entity, once, as programs use it."""

import array
import importlib
import threading
from types import SimpleNamespace

import pytest
import rclpy
from rclpy import _imported_names
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.duration import Duration
from rclpy.exceptions import (
    InvalidHandle, InvalidTopicNameException, NotInitializedException,
    ParameterAlreadyDeclaredException, ParameterNotDeclaredException,
)
from rclpy.executors import (
    ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor,
)
from rclpy.impl.errors import RCLError
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.task import Future
from rcl_interfaces.msg import (
    Parameter as ParameterMsg, ParameterDescriptor, ParameterValue, SetParametersResult,
)
from rcl_interfaces.srv import SetParameters
from std_msgs.msg import String
from test_msgs.action import Fibonacci
from test_msgs.srv import BasicTypes

DEADLINE_S = 20


@pytest.fixture
def context():
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    yield context
    context.try_shutdown()


@pytest.fixture
def node(context):
    node = rclpy.create_node('node', namespace='/tests', context=context)
    yield node
    node.destroy_node()


@pytest.fixture
def executor(context, node):
    with SingleThreadedExecutor(context=context) as executor:
        executor.add_node(node)
        yield executor


def complete(executor, future):
    executor.spin_until_future_complete(future, timeout_sec=DEADLINE_S)
    assert future.done(), 'the future is not done in time'
    return future.result()


def test_messages_arrive_in_order_with_their_info(node, executor):
    received = []
    done = Future()

    def callback(message, info):
        received.append((message.data, info['source_timestamp']))
        if len(received) == 3:
            done.set_result(None)

    node.create_subscription(String, 'chatter', callback, 10)
    publisher = node.create_publisher(String, 'chatter', 10)
    for text in ('a', 'b', 'c'):
        publisher.publish(String(data=text))
    complete(executor, done)
    assert [text for text, _ in received] == ['a', 'b', 'c']
    assert all(stamp > 0 for _, stamp in received)


def test_a_raw_subscription_can_get_a_view_of_the_received_memory(node, executor):
    from rclpy.serialization import deserialize_message, serialize_message
    done = Future()
    node.create_subscription(
        String, 'view', lambda view, info: done.set_result(view), 10, raw=memoryview)
    payload = serialize_message(String(data='view'))
    node.create_publisher(String, 'view', 10).publish(payload)
    view = complete(executor, done)
    assert type(view) is memoryview and view.readonly and bytes(view) == payload
    # The buffer is the message itself, no copy.
    assert type(view.obj).__name__ == 'RawMessage'
    assert deserialize_message(view, String).data == 'view'


def test_a_content_filter_has_the_options_of_later_releases(node, executor):
    from rclpy.subscription_content_filter_options import ContentFilterOptions
    received = []
    options = ContentFilterOptions('data = %0', ["'b'"])
    subscription = node.create_subscription(
        String, 'filtered', lambda message: received.append(message.data), 10,
        content_filter_options=options)
    assert subscription.is_cft_enabled and subscription.get_content_filter() == options
    publisher = node.create_publisher(String, 'filtered', 10)
    for data in 'abc':
        publisher.publish(String(data=data))
    executor.spin_once(timeout_sec=5.0)
    executor.spin_once(timeout_sec=0)
    assert received == ['b']
    subscription.set_content_filter('')
    assert subscription.get_content_filter() is None


def test_a_raw_subscription_gets_what_was_serialized(node, executor):
    from rclpy.serialization import deserialize_message, serialize_message
    done = Future()
    node.create_subscription(String, 'raw', done.set_result, 10, raw=True)
    payload = serialize_message(String(data='raw'))
    node.create_publisher(String, 'raw', 10).publish(payload)
    received = complete(executor, done)
    assert isinstance(received, bytes)
    assert deserialize_message(received, String).data == 'raw'


def test_a_message_of_another_type_is_refused(node):
    publisher = node.create_publisher(String, 'chatter', 10)
    with pytest.raises(TypeError, match="topic 'chatter'"):
        publisher.publish(ParameterDescriptor())
    node.destroy_publisher(publisher)
    with pytest.raises(InvalidHandle):
        publisher.publish(String())


def test_names_and_states_that_are_wrong(context, node):
    with pytest.raises(InvalidTopicNameException):
        node.create_publisher(String, 'chatter?', 10)
    with pytest.raises(RuntimeError, match='not valid'):
        node.create_publisher(BasicTypes, 'chatter', 10)
    with pytest.raises(TypeError, match='Expected QoSProfile or int'):
        node.create_publisher(String, 'chatter', 'ten')
    with pytest.raises(RuntimeError, match='only be called once'):
        context.init()
    with pytest.raises(NotInitializedException):
        rclpy.create_node('node', context=rclpy.Context())


def test_a_callback_awaits_a_service_of_its_own_node(node, executor):
    async def serve(request, response):
        response.int32_value = request.int32_value + 1
        return response

    group = ReentrantCallbackGroup()
    node.create_service(BasicTypes, 'add', serve, callback_group=group)
    client = node.create_client(BasicTypes, 'add', callback_group=group)
    assert client.wait_for_service(DEADLINE_S)
    done = Future()

    async def call():
        timer.cancel()
        response = await client.call_async(BasicTypes.Request(int32_value=41))
        done.set_result(response.int32_value)

    timer = node.create_timer(0.0, call, group)
    assert complete(executor, done) == 42


def test_a_call_blocks_in_another_thread(node, executor):
    node.create_service(BasicTypes, 'echo', lambda request, response: response)
    client = node.create_client(BasicTypes, 'echo')
    assert client.wait_for_service(DEADLINE_S)
    done = Future()
    thread = threading.Thread(
        target=lambda: done.set_result(client.call(BasicTypes.Request(), DEADLINE_S)))
    thread.start()
    assert isinstance(complete(executor, done), BasicTypes.Response)
    thread.join(DEADLINE_S)


def test_a_service_callback_must_return_a_response(node, executor):
    node.create_service(BasicTypes, 'nothing', lambda request, response: None)
    client = node.create_client(BasicTypes, 'nothing')
    assert client.wait_for_service(DEADLINE_S)
    future = client.call_async(BasicTypes.Request())
    with pytest.raises(TypeError, match="service 'nothing' must return its response"):
        executor.spin_until_future_complete(future, timeout_sec=DEADLINE_S)


def test_an_action_gives_feedback_and_a_result(node, executor):
    def execute(goal):
        goal.publish_feedback(Fibonacci.Feedback(sequence=[0, 1]))
        goal.succeed()
        return Fibonacci.Result(sequence=[0, 1, 1])

    server = ActionServer(node, Fibonacci, 'fibonacci', execute)
    client = ActionClient(node, Fibonacci, 'fibonacci')
    assert client.wait_for_server(DEADLINE_S)
    feedback = []
    handle = complete(executor, client.send_goal_async(
        Fibonacci.Goal(order=2), lambda message: feedback.append(message.feedback.sequence)))
    assert handle.accepted
    response = complete(executor, handle.get_result_async())
    assert list(response.result.sequence) == [0, 1, 1] and response.status == 4
    assert [list(sequence) for sequence in feedback] == [[0, 1]]
    client.destroy()
    server.destroy()


def test_a_goal_is_rejected_or_cancelled(node, executor):
    started = []

    async def execute(goal):
        started.append(goal)
        while not goal.is_cancel_requested:
            await pause()
        goal.canceled()
        return Fibonacci.Result()

    class pause:
        def __await__(self):
            yield

    server = ActionServer(
        node, Fibonacci, 'fibonacci', execute,
        goal_callback=lambda goal: (
            GoalResponse.ACCEPT if goal.order > 0 else GoalResponse.REJECT),
        cancel_callback=lambda goal: CancelResponse.ACCEPT)
    client = ActionClient(node, Fibonacci, 'fibonacci')
    assert client.wait_for_server(DEADLINE_S)
    assert not complete(executor, client.send_goal_async(Fibonacci.Goal(order=0))).accepted
    handle = complete(executor, client.send_goal_async(Fibonacci.Goal(order=1)))
    cancelled = complete(executor, handle.cancel_goal_async())
    assert len(cancelled.goals_canceling) == 1
    assert complete(executor, handle.get_result_async()).status == 5
    client.destroy()
    server.destroy()


def _send_goal(executor, client):
    handle = complete(executor, client.send_goal_async(Fibonacci.Goal(order=1)))
    assert handle.accepted
    return handle


def test_a_destroyed_goal_leaves_no_result(node, executor):
    goals, destroys_at_once = [], True

    def accepted(goal):
        goals.append(goal)
        if destroys_at_once:
            goal.destroy()

    def execute(goal):
        goal.succeed()
        return Fibonacci.Result(sequence=[1])

    server = ActionServer(
        node, Fibonacci, 'fibonacci', execute, handle_accepted_callback=accepted)
    client = ActionClient(node, Fibonacci, 'fibonacci')
    assert client.wait_for_server(DEADLINE_S)
    # Of a goal that nobody executes.
    handle = _send_goal(executor, client)
    assert not server._result_futures
    assert complete(executor, handle.get_result_async()).status == 0
    # Of a goal whose result somebody waits for.
    destroys_at_once = False
    waiting = _send_goal(executor, client).get_result_async()
    executor.spin_until_future_complete(waiting, timeout_sec=0.3)
    assert not waiting.done()
    goals[-1].destroy()
    assert complete(executor, waiting).status == 0
    # Of a goal that has ended.
    handle = _send_goal(executor, client)
    goals[-1].execute()
    assert complete(executor, handle.get_result_async()).status == 4
    goals[-1].destroy()
    assert complete(executor, handle.get_result_async()).status == 0
    # Of a goal that waits for its execution: the callback still gives the result.
    handle = _send_goal(executor, client)
    goals[-1].execute()
    goals[-1].destroy()
    response = complete(executor, handle.get_result_async())
    assert response.status == 0
    assert not (server._result_futures or server._goal_handles)
    client.destroy()
    server.destroy()


def test_a_new_goal_takes_the_place_of_one_that_ended(node, executor):
    def execute(goal):
        goal.succeed()
        return Fibonacci.Result()

    server = ActionServer(node, Fibonacci, 'fibonacci', execute, result_timeout=-1)
    client = ActionClient(node, Fibonacci, 'fibonacci')
    assert client.wait_for_server(DEADLINE_S)
    first = _send_goal(executor, client)
    assert complete(executor, first.get_result_async()).status == 4
    for number in range(1, 65536):
        server._goals.accept(number.to_bytes(16, 'big'), 0)
    # Its status array would have 65 536 rows.
    server._publish_status = lambda: None
    second = _send_goal(executor, client)
    assert complete(executor, second.get_result_async()).status == 4
    assert list(server._goal_handles) == list(server._result_futures) == [
        bytes(second.goal_id.uuid)]
    assert complete(executor, first.get_result_async()).status == 0
    client.destroy()
    server.destroy()


def test_parameters_and_their_callbacks(node):
    assert node.declare_parameter('speed', 1.5).value == 1.5
    with pytest.raises(ParameterAlreadyDeclaredException):
        node.declare_parameter('speed', 2.0)
    with pytest.raises(ParameterNotDeclaredException):
        node.get_parameter('sped')

    def limit(parameters):
        too_fast = any(parameter.value > 10 for parameter in parameters)
        return SetParametersResult(successful=not too_fast, reason='too fast' if too_fast else '')

    node.add_on_set_parameters_callback(limit)
    rejected, = node.set_parameters([Parameter('speed', value=11.0)])
    assert (rejected.successful, rejected.reason) == (False, 'too fast')
    wrong, = node.set_parameters([Parameter('speed', value='fast')])
    assert 'Wrong parameter type' in wrong.reason
    assert node.set_parameters([Parameter('speed', value=9.0)])[0].successful
    assert node.get_parameter('speed').value == 9.0


def test_qos_overrides_have_the_rules_of_the_client_core(context):
    arguments = []
    for text in (
            '/c.publisher.depth:=3', '/c.publisher.reliability:=best_effort',
            '/c.publisher.deadline:=100000000', '/c.publisher.lifespan:=5',
            '/c.subscription_slow.history:=keep_all', '/c.subscription_bad.reliability:=perhaps',
            '/c.subscription_few.depth:=0'):
        arguments += ['-p', 'qos_overrides.' + text]
    node = rclpy.create_node('qos', context=context, cli_args=['--ros-args', *arguments])
    kinds = [QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN, QoSPolicyKind.DEPTH]
    publisher = node.create_publisher(
        String, '/c', QoSProfile(depth=10), qos_overriding_options=QoSOverridingOptions(kinds))
    found = publisher.qos_profile
    assert (found.depth, found.reliability.name) == (3, 'RELIABLE')
    assert (found.deadline.nanoseconds, found.lifespan.nanoseconds) == (100_000_000, 5)
    described = node.describe_parameter('qos_overrides./c.publisher.depth')
    assert described.read_only
    assert described.description == 'qos policy {depth} for publisher {/c}'
    endless = Duration(nanoseconds=2**63 - 2)
    qos = QoSProfile(depth=10, deadline=endless)
    options = QoSOverridingOptions(
        [QoSPolicyKind.HISTORY, QoSPolicyKind.LIFESPAN, QoSPolicyKind.DEADLINE], entity_id='slow')
    node.create_subscription(String, '/c', print, qos, qos_overriding_options=options)
    assert (qos.history.name, qos.depth, qos.deadline) == ('KEEP_ALL', 10, endless)
    assert not node.has_parameter('qos_overrides./c.subscription_slow.lifespan')
    for name, reason in (('bad', 'use reliable, best_effort'), ('few', 'use a number of 1 or more')):
        options = QoSOverridingOptions.with_default_policies(entity_id=name)
        with pytest.raises(RCLError, match=reason) as raised:
            node.create_subscription(String, '/c', print, 10, qos_overriding_options=options)
        assert f"parameter 'qos_overrides./c.subscription_{name}." in str(raised.value)
    node.destroy_node()


def test_another_node_sets_parameters(context, node, executor):
    node.declare_parameter('name', 'old')
    other = rclpy.create_node('other', context=context)
    executor.add_node(other)
    client = AsyncParameterClient(other, '/tests/node')
    assert client.wait_for_services(DEADLINE_S)
    result = complete(executor, client.set_parameters([Parameter('name', value='new')]))
    assert result.results[0].successful
    values = complete(executor, client.get_parameters(['name'])).values
    assert values[0].string_value == 'new'
    # A type that does not exist neither ends the spin nor deletes the parameter.
    unknown = ParameterMsg(name='name', value=ParameterValue(type=42))
    setter = other.create_client(SetParameters, '/tests/node/set_parameters')
    request = SetParameters.Request(parameters=[unknown])
    assert setter.wait_for_service(DEADLINE_S)
    result, = complete(executor, setter.call_async(request)).results
    assert 'type 42' in result.reason and node.has_parameter('name')
    other.destroy_node()


def test_parameters_are_values(node):
    assert Parameter('a', value=[1]) == Parameter('a', value=[1]) != Parameter('a', value=[1.0])
    node.declare_parameter('b', [b'x', b'y'])
    assert node.get_parameter('b') == Parameter('b', value=[b'x', b'y'])
    node.declare_parameter('c', (1, 2))
    assert node.get_parameter('c').value == [1, 2]
    with pytest.raises(ValueError, match="parameter 'd': .* at most 64 bits"):
        node.declare_parameter('d', 2**63)
    with pytest.raises(TypeError, match='callable'):
        node.add_on_set_parameters_callback(1)
    node.add_on_set_parameters_callback(lambda given: True)
    with pytest.warns(UserWarning, match='SetParametersResult'):
        result, = node.set_parameters([Parameter('c', value=[3])])
    assert result.reason == 'Callback returned an invalid type'


@pytest.mark.parametrize('value', [[1, 2], (1, 2), array.array('q', [1, 2])], ids=repr)
def test_sequences_of_parameters_are_compared_as_lists(node, value):
    for other in ([1, 2], (1, 2), array.array('q', [1, 2])):
        assert Parameter('a', value=value) == Parameter('a', value=other)
    assert Parameter('a', value=value) != Parameter('a', value=[1, 3])
    assert node.declare_parameter('a', value) == Parameter('a', value=value)


@pytest.mark.parametrize('value', ['\udc80', ['a', '\udc80']], ids=ascii)
def test_a_text_without_utf_8_is_a_value_error(node, value):
    with pytest.raises(ValueError, match="parameter 'x': .*surrogates") as error:
        node.declare_parameter('x', value)
    assert isinstance(error.value.__cause__, UnicodeEncodeError)


def test_an_on_set_callback_may_return_any_object_with_its_attributes(node):
    results = iter([
        SimpleNamespace(successful=True), SimpleNamespace(successful=False, reason='no'),
        SimpleNamespace(successful=False)])
    node.declare_parameter('x', 1)
    node.add_on_set_parameters_callback(lambda given: next(results))
    found = [node.set_parameters([Parameter('x', value=2)])[0] for _ in range(3)]
    assert [each.successful for each in found] == [True, False, False]
    assert [each.reason for each in found] == ['', 'no', '']


def test_the_private_dictionaries_of_parameters_refuse_changes(node):
    node.declare_parameter('x', 1)
    assert node._parameters['x'].value == 1
    for private in (node._parameters, node._parameter_overrides):
        with pytest.raises(TypeError):
            private['x'] = Parameter('x', value=2)


def test_a_name_that_comes_again_makes_no_answer_of_any_size(context, node, executor):
    node.declare_parameter('robot_description', 'x' * 300_000)
    other = rclpy.create_node('other', context=context)
    executor.add_node(other)
    client = AsyncParameterClient(other, '/tests/node')
    assert client.wait_for_services(DEADLINE_S)
    for count, answered in ((2, 2), (16_384, 0)):
        names = ['robot_description'] * count
        assert len(complete(executor, client.get_parameters(names)).values) == answered
    other.destroy_node()


def test_late_joiners_get_transient_local_messages(node, executor):
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, 'latched', qos).publish(String(data='kept'))
    done = Future()
    node.create_subscription(String, 'latched', done.set_result, qos)
    assert complete(executor, done).data == 'kept'


def test_a_lifecycle_publisher_publishes_while_active(context, executor):
    class Talker(LifecycleNode):
        def on_configure(self, state):
            self.publisher = self.create_lifecycle_publisher(String, '/lifecycle', 10)
            return super().on_configure(state)

    talker = Talker('talker', context=context)
    received = []
    talker.create_subscription(String, '/lifecycle', lambda m: received.append(m.data), 10)
    executor.add_node(talker)
    assert talker.trigger_configure() == TransitionCallbackReturn.SUCCESS
    talker.publisher.publish(String(data='inactive'))
    assert talker.trigger_activate() == TransitionCallbackReturn.SUCCESS
    talker.publisher.publish(String(data='active'))
    while not received:
        executor.spin_once(timeout_sec=DEADLINE_S)
    assert received == ['active']
    talker.destroy_node()


def test_shutdown_from_outside_ends_spin(context, node):
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    raised = []

    def spin():
        try:
            executor.spin()
        except ExternalShutdownException as error:
            raised.append(error)

    waiting = threading.Event()
    node.create_timer(0.0, waiting.set)
    thread = threading.Thread(target=spin)
    thread.start()
    assert waiting.wait(DEADLINE_S)
    context.shutdown()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_many_threads_serve_many_calls(context, node):
    group = ReentrantCallbackGroup()
    node.create_service(
        BasicTypes, 'double', lambda request, response: _doubled(request, response),
        callback_group=group)
    client = node.create_client(BasicTypes, 'double', callback_group=group)
    with MultiThreadedExecutor(4, context=context) as executor:
        executor.add_node(node)
        assert client.wait_for_service(DEADLINE_S)
        futures = [
            client.call_async(BasicTypes.Request(int32_value=number)) for number in range(8)]
        for number, future in enumerate(futures):
            assert complete(executor, future).int32_value == 2 * number
    assert not client._pending_requests


def _doubled(request, response):
    response.int32_value = 2 * request.int32_value
    return response


def test_a_thousand_nodes_come_and_go(context):
    import gc
    for _ in range(1000):
        node = rclpy.create_node(
            'short', context=context, start_parameter_services=False, enable_rosout=False)
        node.itself = node
        node.destroy_node()
    gc.collect()
    last = rclpy.create_node('last', context=context)
    assert last.get_node_names().count('short') == 0
    last.destroy_node()


IMPORTED_NAMES = [
    ('rclpy', 'Parameter', 'rclpy.parameter'),
    ('rclpy._rclpy_pybind11', 'RCLError', 'rclpy.impl.errors'),
    ('rclpy.action.client', 'Waitable', 'rclpy.waitable'),
    ('rclpy.executors', 'Timer', 'rclpy.timer'),
    ('rclpy.node', 'Executor', 'rclpy.executors'),
    ('rclpy.node', 'ParameterDescriptor', 'rcl_interfaces.msg'),
    ('rclpy.node', 'ParameterNotDeclaredException', 'rclpy.exceptions'),
    ('rclpy.parameter', 'ParameterType', 'rcl_interfaces.msg'),
    ('rclpy.subscription', 'QoSProfile', 'rclpy.qos'),
    ('tf2_ros', 'TransformStamped', 'geometry_msgs.msg'),
]


@pytest.mark.parametrize('module, name, origin', IMPORTED_NAMES)
def test_names_that_modules_of_ros_import_can_be_taken_from_there(module, name, origin):
    found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(origin), name)


def test_every_imported_name_exists():
    for name, origin in _imported_names._ORIGINS.items():
        assert hasattr(importlib.import_module(origin), name), (origin, name)
    assert rclpy.node.MsgType.__name__ == 'MsgType'
    with pytest.raises(AttributeError, match="module 'rclpy.node' has no attribute 'Nod'"):
        rclpy.node.Nod
    with pytest.raises(ImportError):
        from rclpy import NoSuchName  # noqa: F401
