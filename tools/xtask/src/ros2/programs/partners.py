"""
Partners for programs whose own partner is written in C++, or is a person with `ros2`.

`cargo xtask ros2 --wheel programs` runs a function of this file on the wheel, and on the
rclpy of a ROS 2. Each prints what reached it, and ends by itself.
"""

import sys

import rclpy
from example_interfaces.srv import AddTwoInts
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import ParameterEvent
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import (
    DurabilityPolicy, LivelinessPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy)
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import String


def say(line):
    print(line, flush=True)


def spin_until(node, condition):
    """Run callbacks until the condition holds. The runner has the deadline."""
    while not condition():
        rclpy.spin_once(node, timeout_sec=0.1)


def result_of(node, future):
    rclpy.spin_until_future_complete(node, future)
    return future.result()


def hears(heard):
    def callback(message):
        say(f'heard {message.data}')
        heard.append(message.data)

    return callback


def blackboard(_):
    """Stand in for `parameter_blackboard` of demo_nodes_cpp: everything may be set."""
    node = rclpy.create_node(
        'parameter_blackboard', allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True)
    deleted = []

    def on_set(parameters):
        for parameter in parameters:
            say(f'set {parameter.name} {parameter.value}')
            if parameter.type_ == Parameter.Type.NOT_SET:
                deleted.append(parameter.name)

    node.add_post_set_parameters_callback(on_set)
    spin_until(node, lambda: 'string_parameter' in deleted)
    # The answer to the last request is on its way.
    spin_until(node, lambda: len(node.get_node_names()) == 1)


def parameters(_):
    """Set a parameter of `set_parameters_callback`, which sets another one then."""
    node = rclpy.create_node('parameters')
    client = AsyncParameterClient(node, 'set_parameters_callback')
    events = []

    def on_event(event):
        for one in event.changed_parameters:
            events.append(f'{one.name} {parameter_value_to_python(one.value)}')

    # Only what the service announces proves that events cross.
    node.create_subscription(ParameterEvent, '/parameter_events', on_event, 10)
    client.wait_for_services()
    spin_until(node, lambda: node.count_publishers('/parameter_events') == 2)
    values = iter(float(n) + 0.5 for n in range(1, 1000))
    while 'param2 4.0' not in events:
        done = result_of(node, client.set_parameters(
            [Parameter('param1', value=next(values))]))
        say(f'successful {done.results[0].successful}')
        for _ in range(10):
            rclpy.spin_once(node, timeout_sec=0.1)
    say(f'event {events[0]}')
    done = result_of(node, client.get_parameters(['param1', 'param2']))
    values = [parameter_value_to_python(value) for value in done.values]
    say(f'param1 {values[0]} param2 {values[1]}')


def service_events(_):
    """Switch the introspection of a client and a service on, and read their events."""
    node = rclpy.create_node('service_events')
    events = {}

    def on_event(event):
        numbers = [f'{one.a} + {one.b}' for one in event.request]
        numbers += [f'{one.sum}' for one in event.response]
        events[event.info.event_type] = ' '.join(numbers)

    node.create_subscription(
        AddTwoInts.Event, 'add_two_ints/_service_event', on_event, 10)
    for side in ('client', 'service'):
        client = AsyncParameterClient(node, f'introspection_{side}')
        client.wait_for_services()
        name = f'{side}_configure_introspection'
        done = result_of(node, client.set_parameters([Parameter(name, value='contents')]))
        say(f'{side} {done.results[0].successful}')
    spin_until(node, lambda: len(events) == 4)
    for kind in sorted(events):
        say(f'event {kind} with {events[kind]}')


def lifecycle(_):
    """Lead the talker through its life."""
    node = rclpy.create_node('lifecycle')
    heard, events = [], []
    node.create_subscription(String, 'lifecycle_chatter', hears(heard), 10)
    node.create_subscription(
        TransitionEvent, 'lc_talker/transition_event',
        lambda event: events.append(f'{event.start_state.label} {event.goal_state.label}'), 10)
    change = node.create_client(ChangeState, 'lc_talker/change_state')
    state = node.create_client(GetState, 'lc_talker/get_state')
    change.wait_for_service()
    state.wait_for_service()
    spin_until(node, lambda: node.count_publishers('lc_talker/transition_event') == 1)

    def go(transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        assert result_of(node, change.call_async(request)).success, transition
        now = result_of(node, state.call_async(GetState.Request())).current_state
        say(f'state {now.label}')

    go(Transition.TRANSITION_CONFIGURE)
    spin_until(node, lambda: events)
    say(f'event {events[0]}')
    go(Transition.TRANSITION_ACTIVATE)
    spin_until(node, lambda: heard)
    go(Transition.TRANSITION_DEACTIVATE)
    go(Transition.TRANSITION_CLEANUP)
    go(Transition.TRANSITION_CONFIGURE)
    go(Transition.TRANSITION_INACTIVE_SHUTDOWN)


def deadline_listener(_):
    """Request what the talker offers, and hear that it missed it."""
    node = rclpy.create_node('deadline_listener')
    heard, missed = [], []
    events = SubscriptionEventCallbacks(deadline=missed.append)
    node.create_subscription(
        String, 'qos_deadline_chatter', hears(heard),
        QoSProfile(depth=10, deadline=Duration(seconds=0.8)), event_callbacks=events)
    spin_until(node, lambda: heard)
    missed.clear()
    spin_until(node, lambda: missed)
    say('requested deadline missed')


def incompatible_listener(_):
    """Request more than the talker offers."""
    node = rclpy.create_node('incompatible_listener')
    seen = []
    events = SubscriptionEventCallbacks(incompatible_qos=seen.append)
    qos = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(
        String, 'incompatible_qos_chatter', lambda message: say(f'wrong: {message}'), qos,
        event_callbacks=events)
    spin_until(node, lambda: seen)
    say(f'requested incompatible qos {QoSPolicyKind(seen[0].last_policy_kind).name}')
    # The talker hears of it as long as this node is there.
    spin_until(node, lambda: node.count_publishers('incompatible_qos_chatter') == 0)


def lifespan_listener(_):
    """Subscribe after the first messages expired, and before the last ones do."""
    node = rclpy.create_node('lifespan_listener')
    clock = node.get_clock()
    spin_until(node, lambda: node.count_publishers('qos_lifespan_chatter') == 1)
    start = clock.now()
    # The talker has sent six messages of ten by then, two a second.
    spin_until(node, lambda: clock.now() - start > Duration(seconds=3.2))
    heard = []
    node.create_subscription(
        String, 'qos_lifespan_chatter', hears(heard),
        QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    spin_until(node, lambda: heard)
    first = int(heard[0].split()[-1])
    assert 1 < first < 9, heard
    say('first heard without the expired ones')


def liveliness_listener(arguments):
    """Hear that the talker is alive, and that it no longer is."""
    node = rclpy.create_node('liveliness_listener')
    heard, changes = [], []
    policy = (LivelinessPolicy.MANUAL_BY_TOPIC if arguments == ['manual']
              else LivelinessPolicy.AUTOMATIC)
    node.create_subscription(
        String, 'qos_liveliness_chatter', hears(heard),
        QoSProfile(depth=10, liveliness=policy, liveliness_lease_duration=Duration(seconds=1)),
        event_callbacks=SubscriptionEventCallbacks(liveliness=changes.append))
    spin_until(node, lambda: any(change.alive_count == 1 for change in changes))
    say('alive 1')
    spin_until(node, lambda: heard)
    spin_until(node, lambda: changes[-1].alive_count == 0)
    say(f'alive 0 not alive {changes[-1].not_alive_count}')


def images(_):
    """Publish images, as `message_lost_talker` of C++ does."""
    node = rclpy.create_node('images')
    publisher = node.create_publisher(Image, 'message_lost_chatter', 10)
    spin_until(node, lambda: publisher.get_subscription_count() == 1)
    say('matched')
    for _ in range(20):
        image = Image(height=100, width=100, step=300, encoding='rgb8', data=bytes(30_000))
        image.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(image)
        rclpy.spin_once(node, timeout_sec=0.1)


def clouds(_):
    """Read the points of a cloud."""
    from sensor_msgs_py import point_cloud2

    node = rclpy.create_node('clouds')
    received = []
    node.create_subscription(
        PointCloud2, 'test_cloud', received.append,
        QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    spin_until(node, lambda: received)
    points = point_cloud2.read_points(received[0], field_names=['x'])
    say(f'cloud of {len(points)} points from {points["x"].min()} to {points["x"].max()}')


def emergency_stop(_):
    """Stop a robot, and hear what its talker says."""
    node = rclpy.create_node('emergency_stop')
    heard = []
    node.create_subscription(String, 'chatter', hears(heard), 10)
    publisher = node.create_publisher(String, 'estop', 10)
    spin_until(node, lambda: publisher.get_subscription_count() == 1)
    say('matched')
    publisher.publish(String(data='stop'))
    spin_until(node, lambda: heard)
    assert publisher.wait_for_all_acked(Duration(seconds=30))


def main():
    rclpy.init()
    globals()[sys.argv[1]](sys.argv[2:])
    rclpy.shutdown()


main()
