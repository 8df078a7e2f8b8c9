"""The native module: handles, endpoints, pollers, timers, clocks, graph, events."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from pteros import _native
from rclpy.clock import Clock
from rclpy.parameter import Parameter

from rcl_interfaces.msg import ParameterDescriptor
from std_msgs.msg import String, UInt8MultiArray
from std_srvs.srv import SetBool

QOS = _native.rmw_qos_profile_t()
SECOND = 1_000_000_000


@pytest.fixture
def context():
    context = _native.Context()
    yield context
    if context.ok():
        context.shutdown()


@pytest.fixture
def node(context):
    return _native.Node(context, 'tester', '/ns')


def wait_for(poller, condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, 'nothing came in time'
        poller.wait(SECOND // 10)


def test_a_message_goes_from_a_publisher_to_a_subscription(context, node):
    publisher = _native.Publisher(node, String, 'chatter', QOS)
    subscription = _native.Subscription(node, String, 'chatter', QOS)
    poller = _native.Poller(context)
    poller.add(subscription)
    assert poller.wait(0) == []
    assert subscription.take() is None
    publisher.publish(String(data='hello'))
    assert poller.wait(10 * SECOND) == [subscription]
    message, info = subscription.take()
    assert message == String(data='hello')
    assert info.to_dict()['publication_sequence_number'] == 1
    assert info.publisher_gid == publisher.gid
    assert publisher.get_topic_name() == '/ns/chatter'
    assert publisher.get_subscription_count() == subscription.get_publisher_count() == 1
    assert publisher.wait_for_all_acked(10 * SECOND)


def test_a_raw_message_is_a_read_only_buffer(node):
    publisher = _native.Publisher(node, UInt8MultiArray, 'bytes', QOS)
    subscription = _native.Subscription(node, UInt8MultiArray, 'bytes', QOS)
    payload = _native.serialize_message(UInt8MultiArray(data=b'abc'))
    publisher.publish_raw(memoryview(payload))
    raw, _ = subscription.take_raw()
    view = memoryview(raw)
    size = len(raw)
    # As rclpy's raw messages, which are bytes, are printed.
    assert f'{raw}' == repr(raw) == repr(payload)
    del raw
    gc.collect()
    assert bytes(view) == payload and size == len(payload) and view.readonly
    with pytest.raises(ValueError, match='no serialized message'):
        publisher.publish_raw(b'x')
    with pytest.raises(TypeError):
        type(view.obj)()


def test_a_publisher_refuses_other_types(node):
    publisher = _native.Publisher(node, String, 'chatter', QOS)
    with pytest.raises(TypeError, match='std_msgs/msg/String'):
        publisher.publish(UInt8MultiArray())
    with pytest.raises(TypeError):
        _native.Publisher(node, int, 'chatter', QOS)
    with pytest.raises(_native.InvalidNameError) as raised:
        _native.Publisher(node, String, 'chat ter', QOS)
    assert raised.value.index == 4 and raised.value.kind == 'topic'


def test_destroyed_handles_say_so(node):
    publisher = _native.Publisher(node, String, 'chatter', QOS)
    with publisher:
        publisher.destroy_when_not_in_use()
        publisher.publish(String())
    for use in (publisher.get_topic_name, publisher.__enter__,
                lambda: publisher.publish(String()), lambda: publisher.pointer):
        with pytest.raises(_native.InvalidHandle):
            use()
    publisher.destroy_when_not_in_use()


def test_a_service_answers(context, node):
    service = _native.Service(node, SetBool, 'switch', QOS)
    client = _native.Client(node, SetBool, 'switch', QOS)
    poller = _native.Poller(context)
    poller.set_entities([service, client])
    wait_for(poller, client.service_server_is_available)
    number = client.send_request(SetBool.Request(data=True))
    wait_for(poller, service.is_ready)
    request, header = service.take_request()
    assert request.data is True
    service.send_response(SetBool.Response(success=True, message='on'), header)
    with pytest.raises(_native.RCLError, match='not open'):
        service.send_response(SetBool.Response(), header)
    wait_for(poller, client.is_ready)
    header, response = client.take_response()
    assert header.sequence_number == number and response.message == 'on'
    assert ('/ns/switch', ['std_srvs/srv/SetBool']) in node.get_service_names_and_types()


def test_service_events_tell_of_each_step(context, node):
    service = _native.Service(node, SetBool, 'switch', QOS)
    client = _native.Client(node, SetBool, 'switch', QOS)
    events = _native.Subscription(node, SetBool.Event, 'switch/_service_event', QOS)
    clock = _native.Clock(_native.CLOCK_SYSTEM)
    service.configure_introspection(clock, QOS, 2)
    client.configure_introspection(clock, QOS, 1)
    poller = _native.Poller(context)
    poller.set_entities([service, client])
    wait_for(poller, client.service_server_is_available)
    client.send_request(SetBool.Request(data=True))
    wait_for(poller, service.is_ready)
    _, header = service.take_request()
    service.send_response(SetBool.Response(message='on'), header)
    wait_for(poller, client.is_ready)
    client.take_response()
    seen = {}
    while (taken := events.take()) is not None:
        event = taken[0]
        seen[event.info.event_type] = event
    assert sorted(seen) == [0, 1, 2, 3]
    assert not seen[0].request and seen[1].request[0].data is True
    assert seen[2].response[0].message == 'on' and not seen[3].response


def test_a_guard_condition_and_wake_end_a_wait_of_another_thread(context):
    guard = _native.GuardCondition(context)
    poller = _native.Poller(context)
    poller.add(guard)
    for act, expected in ((guard.trigger_guard_condition, [guard]), (poller.wake, [])):
        found = []
        thread = threading.Thread(target=lambda: found.append(poller.wait()))
        thread.start()
        act()
        thread.join(10)
        assert found == [expected]
    assert not guard.is_triggered()


def test_a_timer_is_ready_when_it_is_due(context):
    clock = _native.Clock(_native.CLOCK_STEADY)
    begin = time.monotonic()
    timer = _native.Timer(clock, context, SECOND // 100)
    poller = _native.Poller(context)
    poller.add(timer)
    assert poller.wait(10 * SECOND) == [timer]
    assert time.monotonic() - begin >= 0.009
    assert timer.call_timer() >= 0
    timer.cancel_timer()
    assert timer.time_until_next_call() is None
    assert poller.wait(SECOND // 20) == []
    with pytest.raises(_native.RCLError, match='canceled'):
        timer.call_timer()
    timer.reset_timer()
    assert poller.wait(10 * SECOND) == [timer]


def test_simulated_time_drives_timers_and_jump_callbacks(context):
    clock = _native.Clock(_native.CLOCK_ROS)
    jumps = []
    clock.add_clock_callback(lambda: jumps.append('before'), jumps.append, True, 1, -1)
    clock.set_ros_time_override(5 * SECOND)
    clock.set_ros_time_override_is_enabled(True)
    assert clock.now() == 5 * SECOND
    assert jumps[0] == 'before' and jumps[1]['clock_change'] == 2
    timer = _native.Timer(clock, context, SECOND)
    poller = _native.Poller(context)
    poller.add(timer)
    assert poller.wait(SECOND // 50) == []
    thread = threading.Thread(target=lambda: clock.set_ros_time_override(6 * SECOND))
    thread.start()
    assert poller.wait(10 * SECOND) == [timer]
    thread.join()
    assert jumps[-1]['delta'] == SECOND


def test_matched_events_count_since_the_last_take(context, node):
    publisher = _native.Publisher(node, String, 'chatter', QOS)
    event = _native.EventHandle(publisher, 4)
    poller = _native.Poller(context)
    poller.add(event)
    assert event.take_event() is None
    subscription = _native.Subscription(node, String, 'chatter', QOS)
    assert poller.wait(10 * SECOND) == [event]
    status = event.take_event()
    assert (status.total_count, status.current_count_change) == (1, 1)
    subscription.destroy_when_not_in_use()
    assert poller.wait(10 * SECOND) == [event]
    status = event.take_event()
    assert (status.current_count, status.current_count_change) == (0, -1)
    with pytest.raises(AttributeError):
        status.alive_count
    with pytest.raises(_native.UnsupportedEventTypeError):
        _native.EventHandle(publisher, 5)


def test_incompatible_qos_is_an_event(context, node):
    best_effort = _native.rmw_qos_profile_t(reliability=2)
    publisher = _native.Publisher(node, String, 'incompatible', best_effort)
    event = _native.EventHandle(publisher, 2)
    subscription = _native.Subscription(node, String, 'incompatible', QOS)
    poller = _native.Poller(context)
    poller.add(event)
    assert poller.wait(10 * SECOND) == [event]
    assert event.take_event().last_policy_kind == 16
    assert subscription.get_publisher_count() == 0


def test_a_content_filter_selects_messages(node):
    publisher = _native.Publisher(node, String, 'chatter', QOS)
    subscription = _native.Subscription(
        node, String, 'chatter', QOS, filter_expression='data = %0', filter_parameters=["'b'"])
    assert subscription.is_cft_enabled
    for data in 'abc':
        publisher.publish(String(data=data))
    assert subscription.take()[0].data == 'b' and subscription.take() is None
    with pytest.raises(_native.RCLError):
        subscription.set_content_filter('nothing = 1')
    subscription.set_content_filter('')
    assert subscription.get_content_filter() is None


def test_the_graph_shows_nodes_topics_and_endpoints(context):
    node = _native.Node(context, 'observer', '/ns', enable_rosout=False)
    publisher = _native.Publisher(node, String, 'seen', QOS)
    assert ('observer', '/ns') in node.get_node_names_and_namespaces()
    assert ('/ns/seen', ['std_msgs/msg/String']) in node.get_topic_names_and_types()
    assert node.names_and_types_by_node('publisher', 'observer', '/ns') == [
        ('/ns/seen', ['std_msgs/msg/String'])]
    [info] = node.info_by_topic(True, '/ns/seen', False)
    assert info['node_name'] == 'observer' and bytes(info['endpoint_gid']) == publisher.gid
    assert info['topic_type_hash']['value'].hex() in _native.get_type_hash(String)
    assert info['qos_profile']['reliability'] == 1
    assert node.count_endpoints('publisher', '/ns/seen') == 1
    with pytest.raises(_native.NodeNameNonExistentError):
        node.names_and_types_by_node('publisher', 'nobody', '/')
    guard = _native.graph_guard_condition(node)
    poller = _native.Poller(context)
    poller.add(guard)
    publisher.destroy_when_not_in_use()
    assert poller.wait(10 * SECOND) == [guard]


def test_arguments_remap_names_and_set_parameters():
    context = _native.Context([
        'program', '--ros-args', '-r', '__node:=other', '-r', 'a:=b', '-p', 'rate:=2.5',
        '-p', 'names:=[left, right]', '--', 'rest'])
    assert context.non_ros_args == ['program', 'rest']
    node = _native.Node(context, 'tester')
    assert node.get_fully_qualified_name() == '/other'
    assert node.resolve_name('a') == '/b' and node.resolve_name('a', only_expand=True) == '/a'
    overrides = _native.ParameterStore(node, (), False, False).overrides()
    assert {name: each.value for name, each in overrides.items()} == {
        'rate': 2.5, 'names': ['left', 'right']}
    context.shutdown()
    with pytest.raises(_native.NotInitializedError):
        _native.Node(context, 'late')
    with pytest.raises(_native.UnknownROSArgsError) as raised:
        _native.Context(['--ros-args', '--nonsense'])
    assert raised.value.unknown_args == ['--nonsense']
    with pytest.raises(_native.RCLInvalidROSArgsError):
        _native.Context(['--ros-args', '-r', 'nothing'])
    with pytest.raises(_native.RCLError, match='233'):
        _native.Context([], 233)


def test_shutdown_ends_waits_and_runs_callbacks_once(context):
    called = []
    context.on_shutdown(lambda: called.append(1))
    poller = _native.Poller(context)
    found = []
    thread = threading.Thread(target=lambda: found.append(poller.wait()))
    thread.start()
    context.shutdown()
    thread.join(10)
    assert found == [[]] and called == [1] and not context.ok()
    assert context.shutdown_reason == 'user'
    with pytest.raises(_native.RCLError):
        context.shutdown()


def test_shutdown_runs_all_callbacks_and_raises_the_first_error(context):
    called = []

    def fail(error):
        called.append(error)
        raise error

    first, second = ValueError('first'), KeyError('second')
    context.on_shutdown(lambda: fail(first))
    context.on_shutdown(lambda: fail(second))
    context.on_shutdown(lambda: called.append('last'))
    with pytest.raises(ValueError, match='first'):
        context.shutdown()
    assert called == [first, second, 'last'] and not context.ok()


def test_loggers_have_levels_and_parents():
    assert _native.get_logger_effective_level('a.b') == 20
    _native.set_logger_level('a', 40)
    assert _native.get_logger_effective_level('a.b') == 40
    assert not _native.is_logger_enabled_for('a.b', 30)
    _native.set_logger_level('a', 0)
    assert _native.get_logger_level('a') == 0
    with pytest.raises(ValueError, match='15'):
        _native.set_logger_level('a', 15)


def test_names_are_validated():
    assert _native.validate_node_name('ok') is None
    assert _native.validate_node_name('no/t')[1] == 2
    assert _native.expand_topic_name('~/a', 'node', '/ns') == '/ns/node/a'


@pytest.mark.parametrize('text, as_yaml, as_rcl', [
    ('0483', '0483', 483.0), ('123E5', '123E5', 123e5), ('y', 'y', True), ('08', '08', 8.0),
    ('010', 8, 8), ('1_000', 1000, '1_000'), ('1:30', 90, '1:30'), ('off', False, False),
    ('1e-3', '1e-3', 1e-3), ('1.5e+3', 1500.0, 1500.0), ('inf', 'inf', float('inf')),
    ('.inf', float('inf'), float('inf')), ('x', 'x', 'x'),
    ('99999999999999999999', 1e20, 1e20),
])
def test_plain_scalars_are_typed_by_yaml_1_1_or_by_rcl(text, as_yaml, as_rcl):
    for value, expected in (
            (_native.read_plain_scalar(text), as_yaml),
            (_native.read_plain_scalar(text, True), as_rcl)):
        assert (type(value), value) == (type(expected), expected)


def test_a_declared_type_decides_how_the_text_of_an_override_is_read():
    context = _native.Context([
        'program', '--ros-args', '-p', 's:=0483', '-p', "d:='1e-3'", '-p', 'l:=[1, 2]'])
    node = _native.Node(context, 'tester')
    store = _native.ParameterStore(node, (), False, False)
    assert store.overrides()['s'].value == 483.0
    silent = SimpleNamespace(
        _pre_set_parameters_callbacks=[], _on_set_parameters_callbacks=[],
        _post_set_parameters_callbacks=[], _clock=Clock(),
        _parameter_event_publisher=SimpleNamespace(publish=bytes))
    for name, default, expected in (
            ('s', 'none', '0483'), ('d', 0.5, 1e-3), ('l', ['none'], ['1', '2']), ('l', [7], [1, 2]),
            ('no', 'none', 'none')):
        parameter = Parameter(name, value=default)
        descriptor = ParameterDescriptor(type=parameter.type_.value)
        assert store.declare(silent, parameter, descriptor, False).value == expected
        store.undeclare(name)
    context.shutdown()


def test_a_signal_ends_a_wait_and_raises():
    program = '''
import signal, sys, threading
from pteros import _native
context = _native.Context()
_native.install_signal_handlers(3)
poller = _native.Poller(context)
try:
    print('ready', flush=True)
    print(poller.wait(), context.ok(), context.shutdown_reason)
except KeyboardInterrupt:
    print('interrupted', context.ok(), context.shutdown_reason)
'''
    for number, expected in ((signal.SIGINT, 'interrupted False signal'),
                             (signal.SIGTERM, '[] False signal')):
        child = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == 'ready\n'
        child.send_signal(number)
        output, _ = child.communicate(timeout=30)
        assert (output.strip(), child.returncode) == (expected, 0)


def test_signal_handlers_are_the_programs_until_it_asks_for_ours():
    program = '''
import os, signal, sys
from pteros import _native


def handled():
    with open('/proc/self/status') as status:
        mask = next(int(line.split()[1], 16) for line in status if line.startswith('SigCgt'))
    return [number for number in (signal.SIGINT, signal.SIGTERM) if mask >> (number - 1) & 1]


first = _native.Context()
print(handled() == [signal.SIGINT], _native.get_current_signal_handlers_options())
_native.install_signal_handlers(_native.SIGNAL_HANDLERS_SIGTERM)
print(handled() == [signal.SIGINT, signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
print(first.ok(), first.shutdown_reason)
_native.uninstall_signal_handlers()
print(handled() == [signal.SIGINT])

# A handler that the program installs later is called, and is there again at the end.
calls = []
signal.signal(signal.SIGTERM, lambda *_: calls.append('called'))
second = _native.Context()
os.kill(os.getpid(), signal.SIGTERM)
print(second.ok(), calls)
_native.install_signal_handlers(_native.SIGNAL_HANDLERS_ALL)
os.kill(os.getpid(), signal.SIGTERM)
print(second.ok(), calls)
_native.uninstall_signal_handlers()
third = _native.Context()
os.kill(os.getpid(), signal.SIGTERM)
print(third.ok(), calls)
'''
    output = subprocess.run(
        [sys.executable, '-c', program], check=True, capture_output=True, text=True).stdout
    assert output.splitlines() == [
        'True 0', 'True', 'False signal', 'True', "True ['called']",
        "False ['called', 'called']", "True ['called', 'called', 'called']"]


def test_a_thousand_nodes_leave_no_memory_behind(context):
    def cycle(count):
        for number in range(count):
            node = _native.Node(context, f'node_{number}', enable_rosout=False)
            publisher = _native.Publisher(node, String, 'chatter', QOS)
            subscription = _native.Subscription(node, String, 'chatter', QOS)
            publisher.publish(String(data='x' * 1000))
            assert subscription.take() is not None

    def resident():
        with open('/proc/self/statm') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    cycle(200)
    gc.collect()
    before = resident()
    cycle(800)
    gc.collect()
    assert resident() - before < 16 << 20
