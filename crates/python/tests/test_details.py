"""Details that programs see: texts of enums, members that they override, later releases."""

import importlib
import os
import subprocess
import sys

import pytest
import rclpy
import rclpy.logging
from geometry_msgs.msg import PoseWithCovariance
from rcl_interfaces.msg import ParameterType
from rclpy.clock import ClockChange, JumpThreshold, ROSClock
from rclpy.duration import Duration, Infinite
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, ManagedEntity, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import get_parameter_value
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy, LivelinessPolicy, QoSCompatibility, QoSProfile, ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.task import Future, FutureState
from rclpy.time import Time
from rclpy.timer import TimerInfo
from std_msgs.msg import Byte, Int8, String, UInt8MultiArray
from test_msgs.srv import Empty


@pytest.fixture
def context():
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    yield context
    context.try_shutdown()


@pytest.mark.parametrize('path, text', [
    ('rclpy.qos.QoSCompatibility.WARNING', 'QoSCompatibility.WARNING'),
    ('rclpy.signals.SignalHandlerOptions.ALL', 'SignalHandlerOptions.ALL'),
    ('rclpy.lifecycle.TransitionCallbackReturn.FAILURE', 'TransitionCallbackReturnType.FAILURE'),
    ('rclpy.service_introspection.ServiceIntrospectionState.OFF', 'ServiceIntrospectionState.OFF'),
    ('rclpy.action.server.GoalEvent.ABORT', 'GoalEvent.ABORT'),
    ('rclpy.event_handler.QoSPublisherEventType.RCL_PUBLISHER_MATCHED',
     'rcl_publisher_event_type_t.RCL_PUBLISHER_MATCHED'),
])
def test_enums_of_the_c_extension_have_a_name_as_text(path, text):
    module, name, member = path.rsplit('.', 2)
    value = getattr(getattr(importlib.import_module(module), name), member)
    assert str(value) == f'{value}' == '%s' % (value,) == text
    assert repr(value) == f'<{text}: {int(value)}>' and value == value.value


def test_a_jump_has_its_size_unless_the_source_changes():
    clock = ROSClock()
    seen = []
    threshold = JumpThreshold(
        min_forward=Duration(seconds=1), min_backward=Duration(seconds=-1))
    clock.create_jump_callback(threshold, post_callback=lambda jump: seen.append(
        (str(jump.clock_change), jump.clock_change, jump.delta.nanoseconds / 1e9)))
    clock._set_ros_time_is_active(True)
    for seconds in (10, 10.5, 12.5, 4):
        clock.set_ros_time_override(Time(seconds=seconds, clock_type=clock.clock_type))
    clock._set_ros_time_is_active(False)
    same = ('ClockChange.ROS_TIME_NO_CHANGE', ClockChange.ROS_TIME_NO_CHANGE)
    assert seen == [
        ('ClockChange.ROS_TIME_ACTIVATED', ClockChange.ROS_TIME_ACTIVATED, 0),
        (*same, 10), (*same, 2), (*same, -8.5),
        ('ClockChange.ROS_TIME_DEACTIVATED', ClockChange.ROS_TIME_DEACTIVATED, 0)]


def test_done_callbacks_can_be_removed():
    future = Future()
    seen = []
    for _ in range(2):
        future.add_done_callback(seen.append)
    assert future._state is FutureState.PENDING
    assert future.remove_done_callback(seen.append) is True
    assert future.remove_done_callback(print) is False
    future.set_result(1)
    assert seen == [future] and future.remove_done_callback(seen.append) is False
    assert future._state is FutureState.FINISHED
    cancelled = Future()
    cancelled.cancel()
    cancelled.add_done_callback(seen.append)
    assert seen == [future, cancelled] and cancelled._state is FutureState.CANCELLED


def test_a_callback_of_a_done_future_raises_in_its_caller():
    future = Future()
    future.add_done_callback(lambda done: 1 / 0)
    with pytest.warns(UserWarning, match='division by zero'):
        future.set_result(1)
    with pytest.raises(ZeroDivisionError):
        future.add_done_callback(lambda done: 1 / 0)
    with pytest.raises(TypeError):
        future.add_done_callback(5)


@pytest.mark.parametrize('offered, requested, result, text', [
    ({}, {}, QoSCompatibility.WARNING,
     'WARNING: Publisher liveliness is system_default and subscription liveliness is '
     'system_default;'),
    ({'liveliness': LivelinessPolicy.AUTOMATIC}, {}, QoSCompatibility.WARNING,
     "WARNING: Publisher's liveliness is automatic, but subscription's is system_default;"),
    ({'liveliness': LivelinessPolicy.MANUAL_BY_TOPIC}, {}, QoSCompatibility.OK, ''),
    ({'reliability': ReliabilityPolicy.BEST_EFFORT}, {}, QoSCompatibility.ERROR,
     'ERROR: Best effort publisher and reliable subscription;'),
    ({'durability': DurabilityPolicy.VOLATILE},
     {'durability': DurabilityPolicy.TRANSIENT_LOCAL, 'deadline': Duration(seconds=1)},
     QoSCompatibility.ERROR,
     'ERROR: Volatile publisher and transient local subscription;'
     'ERROR: Subscription has a deadline, but publisher does not;'),
    ({'liveliness_lease_duration': Duration(seconds=2)},
     {'liveliness_lease_duration': Duration(seconds=1)}, QoSCompatibility.ERROR,
     'ERROR: Subscription liveliness lease duration is less than publisher;'),
])
def test_profiles_compare_as_in_ros_2(offered, requested, result, text):
    assert qos_check_compatible(
        QoSProfile(depth=1, **offered), QoSProfile(depth=1, **requested)) == (result, text)


def test_the_log_topic_has_a_publisher_of_each_node_from_the_start(context):
    with Node('quiet', context=context) as node, Node(
            'silent', context=context, enable_rosout=False) as silent:
        found = [info.node_name for info in node.get_publishers_info_by_topic('/rosout')]
        assert found.count('quiet') == 1 and 'silent' not in found
        topics = [name for name, _ in silent.get_publisher_names_and_types_by_node('silent', '/')]
        assert '/rosout' not in topics


def test_entities_know_their_logger_and_end_with_a_block(context):
    with Node('n', namespace='/a/b', context=context) as node:
        with node.create_publisher(String, 'x', 1) as publisher:
            client = node.create_client(Empty, 'y')
            for entity in (publisher, client, node.create_service(Empty, 'y', print),
                           node.create_subscription(String, 'x', print, 1)):
                assert entity.logger_name == 'a.b.n'
        assert publisher.handle.is_destroyed
    assert Publisher[String] is not None and Future[int] is not None


def test_initializing_is_a_context_manager():
    context = rclpy.Context()
    with rclpy.init(context=context, args=[]) as block:
        assert block.context is context and context.ok()
    assert not context.ok()


@pytest.mark.parametrize('base', [SingleThreadedExecutor, MultiThreadedExecutor])
def test_a_timer_gives_its_info_to_a_callback_that_asks_for_it(context, base):
    infos = []

    class Owner:
        def method(self, info: 'TimerInfo'):
            infos.append(info)

    def function(info: TimerInfo):
        infos.append(info)

    with Node('n', context=context) as node, base(context=context) as executor:
        executor.add_node(node)
        for callback in (Owner().method, function):
            timer = node.create_timer(0.001, callback)
            # Later calls are of the native module.
            while len(infos) < 3:
                executor.spin_once(timeout_sec=5)
            timer.cancel()
            info = infos[0]
            infos.clear()
            assert info.expected_call_time <= info.actual_call_time <= node.get_clock().now()


def test_durations_can_be_added():
    one = Duration(seconds=1)
    assert one + one == Duration(seconds=2) and one - Duration(seconds=3) == one * -2
    assert one * 0.5 == Duration(nanoseconds=500_000_000) and one * float('inf') == Infinite
    with pytest.raises(ValueError, match='nan'):
        one * float('nan')
    with pytest.raises(TypeError):
        one + 1


@pytest.mark.parametrize('base', [SingleThreadedExecutor, MultiThreadedExecutor])
@pytest.mark.parametrize('member', [
    'can_execute', 'wait_for_ready_callbacks', '_wait_for_ready_callbacks', '_make_handler',
    '_take_timer', '_take_subscription', '_take_service', '_take_client',
    '_take_guard_condition', 'spin_once', '_spin_once_impl',
])
def test_own_executors_may_override_a_member(context, base, member):
    called = []

    def override(self, *args, **kwargs):
        called.append(member)
        return getattr(base, member)(self, *args, **kwargs)

    executor = type('Own', (base,), {member: override})(context=context)
    seen = set()

    def serve(request, response):
        seen.add('service')
        return response

    with Node('n', context=context) as node:
        executor.add_node(node)
        node.create_timer(0.001, lambda: seen.add('timer'))
        node.create_subscription(String, 'x', lambda _: seen.add('subscription'), 10)
        node.create_service(Empty, 'e', serve)
        guard = node.create_guard_condition(lambda: seen.add('guard'))
        publisher = node.create_publisher(String, 'x', 10)
        client = node.create_client(Empty, 'e')
        client.wait_for_service()
        publisher.publish(String())
        guard.trigger()
        future = client.call_async(Empty.Request())
        for _ in range(1000):
            executor.spin_once(timeout_sec=1)
            if len(seen) == 4 and future.done():
                break
        assert seen == {'timer', 'subscription', 'service', 'guard'} and future.done()
        assert called
    executor.shutdown()


def test_an_own_executor_decides_what_runs(context):
    class Own(SingleThreadedExecutor):
        is_open = False

        def can_execute(self, entity):
            return self.is_open and super().can_execute(entity)

    seen = []
    with Node('n', context=context) as node, Own(context=context) as executor:
        executor.add_node(node)
        node.create_timer(0.001, lambda: seen.append(1))
        for _ in range(5):
            executor.spin_once(timeout_sec=0.005)
        assert not seen
        executor.is_open = True
        for _ in range(5):
            executor.spin_once(timeout_sec=5)
        assert seen


def test_only_managed_entities_follow_a_node(context):
    class Entity(ManagedEntity):
        def on_configure(self, state):
            return TransitionCallbackReturn.SUCCESS

    node = LifecycleNode('n', context=context)
    for wrong in (3, None, 'entity', object()):
        with pytest.raises(TypeError, match='ManagedEntity'):
            node.add_managed_entity(wrong)
    node.add_managed_entity(Entity())
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    node.destroy_node()


@pytest.mark.parametrize('text, kind', [
    ('1e3', 'STRING'), ('1.0e+3', 'DOUBLE'), ('nan', 'STRING'), ('.nan', 'DOUBLE'),
    ('y', 'STRING'), ('yes', 'BOOL'), ('1_000', 'INTEGER'), ('0x10', 'INTEGER'),
    ('[]', 'BOOL_ARRAY'), ('[1, 2]', 'INTEGER_ARRAY'), ('[1, a]', 'STRING'), ('"5"', 'STRING'),
    ('', 'STRING'), ('~', 'STRING'),
])
def test_texts_become_parameters_by_yaml_1_1(text, kind):
    assert get_parameter_value(text).type == getattr(ParameterType, f'PARAMETER_{kind}')


def test_checked_fields_refuse_what_rosidl_refuses():
    Int8(data=True, check_fields=True)
    UInt8MultiArray(data=b'ab', check_fields=True)
    for make in (
            lambda: Int8(data=200, check_fields=True), lambda: Int8(data=1.0, check_fields=True),
            lambda: String(data=3, check_fields=True), lambda: Byte(data=1, check_fields=True),
            lambda: PoseWithCovariance(covariance=[0.0] * 35, check_fields=True),
            lambda: PoseWithCovariance(covariance=[0] * 36, check_fields=True)):
        with pytest.raises(AssertionError):
            make()
    # The constructor makes an array of the sequence before it is checked.
    with pytest.raises(OverflowError):
        UInt8MultiArray(data=[1, 300], check_fields=True)
    message = UInt8MultiArray(check_fields=True)
    for wrong in ('ab', {1: 2}, None, [1.5], [256]):
        with pytest.raises(AssertionError):
            message.data = wrong
    program = 'from std_msgs.msg import String; String(data=3)'
    done = subprocess.run(
        [sys.executable, '-c', program], env={**os.environ, 'ROS_PYTHON_CHECK_FIELDS': '1'},
        capture_output=True, text=True)
    assert 'AssertionError' in done.stderr


@pytest.mark.parametrize('module, names', [
    ('rclpy.node', 'List Optional Callable ParameterMsg ListParameters SetParametersResult Clock'),
    ('rclpy.executors', 'Condition Lock RLock ThreadPoolExecutor ExitStack TracebackType'),
    ('rclpy.clock', 'ClockHandle TimeHandle JumpHandlePreCallbackType Optional'),
    ('rclpy.timer', 'Callable Clock CallbackGroup TimerInfo'),
    ('rclpy.task', 'Callable Enum FutureState'),
    ('rclpy.logging_service', 'LoggingSeverity TOPIC_SEPARATOR_STRING'),
    ('rclpy.parameter_event_handler', 'defaultdict chain Lock'),
    ('rclpy.type_description_service', 'GetTypeDescription Service'),
    ('rclpy.serialization', 'check_for_type_support'),
    ('rosidl_parser.definition', 'Member Structure Message Service Action IdlFile IdlLocator'),
])
def test_modules_have_the_names_that_those_of_ros_2_import(module, names):
    imported = importlib.import_module(module)
    for name in names.split():
        assert getattr(imported, name) is not None
    with pytest.raises(AttributeError):
        imported.no_such_name


def test_a_call_site_keeps_its_log_filters():
    logger = rclpy.logging.get_logger('filters')

    def log(**filters):
        return logger.info('text', **filters)

    def log_once(**filters):
        return logger.info('text', **filters)

    assert log() is True and log(once=False) is True
    assert log_once(once=True) is True and log_once(once=True) is False
    for call, filters in (
            (log, {'once': True}), (log, {'throttle_duration_sec': 1.0}), (log_once, {}),
            (log_once, {'once': True, 'skip_first': True})):
        with pytest.raises(ValueError, match='filters cannot be changed between calls'):
            call(**filters)
