"""Enums, futures, profiles, times, durations and parameters of texts."""

import importlib
import itertools

import rclpy.qos
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration, Infinite
from rclpy.parameter import Parameter, get_parameter_value
from rclpy.qos import (
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSPresetProfiles, QoSProfile,
    ReliabilityPolicy, qos_check_compatible,
)
from rclpy.task import Future, FutureState, Task
from rclpy.time import Time
from show import show

ENUMS = (
    'rclpy.qos.ReliabilityPolicy', 'rclpy.qos.DurabilityPolicy', 'rclpy.qos.HistoryPolicy',
    'rclpy.qos.LivelinessPolicy', 'rclpy.qos.QoSCompatibility',
    'rclpy.signals.SignalHandlerOptions', 'rclpy.event_handler.QoSPublisherEventType',
    'rclpy.event_handler.QoSSubscriptionEventType',
    'rclpy.service_introspection.ServiceIntrospectionState', 'rclpy.action.GoalResponse',
    'rclpy.action.CancelResponse', 'rclpy.action.server.GoalEvent', 'rclpy.clock.ClockChange',
    'rclpy.clock_type.ClockType', 'rclpy.impl.logging_severity.LoggingSeverity',
    'rclpy.topic_endpoint_info.TopicEndpointTypeEnum', 'rclpy.lifecycle.TransitionCallbackReturn')
for path in ENUMS:
    module, name = path.rsplit('.', 1)
    enum = getattr(importlib.import_module(module), name)
    for member in sorted(name for name in dir(enum) if name.isupper()):
        value = getattr(enum, member)
        print(path, member, str(value), f'{value}', repr(value), value.name, value.value)

# Futures and tasks.
future = Future()
calls = []
future.add_done_callback(calls.append)
future.add_done_callback(calls.append)
for callback in (calls.append, calls.append, print):
    show('remove', future.remove_done_callback, callback)
future.add_done_callback(calls.append)
future.set_result(3)
print(len(calls), future.result(), future._state, future.remove_done_callback(calls.append))
failed = Future()
failed.set_exception(ValueError('x'))
show('failed', failed.result)
cancelled = Future()
cancelled.cancel()
cancelled.add_done_callback(lambda _: print('late'))
print(cancelled.done(), cancelled.cancelled(), cancelled._state, [str(s) for s in FutureState])
cancelled.set_result(1)
print(cancelled.done(), cancelled.cancelled())


async def wait():
    return await waited


waited = Future()
for handler, args in ((lambda a, b=1: a + b, [2]), (wait, []), (wait(), [])):
    task = Task(handler, args)
    task()
    print(task.done(), task.executing())
    waited.set_result('later')
    task()
    print(task.done(), task.result())

# Profiles.
span = Duration(seconds=1)
profiles = {
    'default': {}, 'deadline': {'deadline': span}, 'longer': {'deadline': Duration(seconds=2)},
    'lease': {'liveliness_lease_duration': span},
    **{policy.name: {name: policy} for name, kind in (
        ('reliability', ReliabilityPolicy), ('durability', DurabilityPolicy),
        ('liveliness', LivelinessPolicy)) for policy in kind}}
made = {name: QoSProfile(depth=1, **values) for name, values in profiles.items()}
made.update({preset.name: preset.value for preset in QoSPresetProfiles
             if preset.name != 'ROSOUT_DEFAULT'})
for (one, offered), (other, requested) in itertools.product(made.items(), repeat=2):
    print(one, other, *qos_check_compatible(offered, requested))
for name, profile in made.items():
    print(name, profile)
for values in ({}, {'history': HistoryPolicy.KEEP_LAST}, {'history': HistoryPolicy.KEEP_ALL},
               {'depth': 0}, {'depth': 1, 'lifespan': 3}):
    show(values, lambda: QoSProfile(**values))
for kind in (ReliabilityPolicy, DurabilityPolicy, HistoryPolicy, LivelinessPolicy):
    print(kind.short_keys(), [kind.get_from_short_key(key) for key in kind.short_keys()])

# Times and durations.
for values in ({}, {'seconds': 1}, {'seconds': 1.5}, {'nanoseconds': 3}, {'seconds': -1},
               {'seconds': 1e10}, {'nanoseconds': 2**63}, {'seconds': 'a'}):
    show(('time', values), lambda: (Time(**values), Time(**values).to_msg()))
    show(('duration', values), lambda: (Duration(**values), Duration(**values).to_msg()))
ten, three, four = Time(seconds=10), Time(seconds=3), Duration(seconds=4)
ros = Time(seconds=10, clock_type=ClockType.ROS_TIME)
for name, function in {
        'difference': lambda: ten - three, 'earlier': lambda: ten - four,
        'later': lambda: ten + four, 'reflected': lambda: four + ten, 'sum': lambda: ten + three,
        'negative': lambda: three - four, 'order': lambda: (ten < three, ten >= three),
        'other clock': lambda: ten < ros, 'other type': lambda: ten < 3,
        'equal': lambda: four == Duration(nanoseconds=4 * 10**9), 'hash': lambda: hash(four),
        'clock': lambda: (ros.clock_type, Clock().now().clock_type),
        'infinite': lambda: (str(Infinite), Infinite.nanoseconds)}.items():
    show(name, function)

# Parameters.
for text in ('1', '1.0', 'true', 'yes', 'a', '[1, 2]', '[1, a]', '', 'null', '0x10', '1e3', '010',
             '.5', '"5"', '[]', 'nan', '.nan', '.inf', 'y', 'No', '1_000'):
    show(('text', text), lambda: get_parameter_value(text))
for value in (True, 1, 1.5, 'a', b'ab', [1, 2], [1.0], [True], ['a'], [b'a'], [], (1, 2), [1, 'a'],
              {'a': 1}, None, [1, 2.0], [None]):
    show(('value', value), lambda: Parameter('p', value=value).type_)
