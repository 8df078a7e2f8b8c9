"""Nodes, their parameters, and lifecycle nodes."""

import rclpy
from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult,
)
from rclpy.lifecycle import LifecycleNode, ManagedEntity, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from show import show
from std_msgs.msg import String
from test_msgs.srv import Empty

rclpy.init()
node = Node('n', namespace='ns', parameter_overrides=[
    Parameter('o', value=5), Parameter('os', value='x')])
print(node.get_name(), node.get_fully_qualified_name(), node.get_logger().name)
print(sorted(publisher.topic_name for publisher in node.publishers))
print(sorted(service.srv_name for service in node.services), len(list(node.waitables)))
print(sorted(node.get_publisher_names_and_types_by_node('n', '/ns')))
print(node.count_publishers('/rosout'), node.count_publishers('x'))
silent = Node('silent', enable_rosout=False, start_parameter_services=False)
print(sorted(silent.get_publisher_names_and_types_by_node('silent', '/')),
      node.count_publishers('/rosout'))
publisher = node.create_publisher(String, 'x', 10)
subscription = node.create_subscription(String, 'x', lambda _: None, 10)
service = node.create_service(Empty, 's', lambda request, response: response)
client = node.create_client(Empty, 's')
for entity in (publisher, subscription, service, client):
    print(entity.logger_name)
print(publisher.topic_name, subscription.topic_name, service.service_name, client.service_name)
for name in ('x y', '1x', '', 'a//b', '~/a', '{node}/x', '{foo}'):
    show(('topic', name), lambda: node.resolve_topic_name(name))
    show(('publisher', name), lambda: node.create_publisher(String, name, 10).topic_name)
for name in ('a b', '', '1'):
    show(('node', name), Node, name)
for make in (lambda: node.create_publisher(int, 'x', 10),
             lambda: node.create_publisher(String, 'x', 'a'),
             lambda: node.create_publisher(String, 'x', -1),
             lambda: node.create_subscription(String, 'x', 3, 10),
             lambda: node.create_subscription(String, 'x', lambda: None, 10),
             lambda: node.create_service(String, 'x', print),
             lambda: node.create_timer(-1, None), lambda: node.create_rate(0)):
    show('make', make)


def told(parameter):
    return parameter.name, parameter.type_, parameter.value


def declare(name, *args, **kwargs):
    show(('declare', name), lambda: told(node.declare_parameter(name, *args, **kwargs)))


def assign(name, *value):
    show(('set', name, *value), lambda: node.set_parameters([
        Parameter(name, value=value[0]) if value else Parameter(name)]))


declare('a', 1)
declare('a', 2)
declare('o', 1)
declare('os', 1)
declare('ignored', 1, ignore_override=True)
declare('none')
declare('typed', Parameter.Type.INTEGER)
declare('dynamic', None, ParameterDescriptor(dynamic_typing=True))
declare('fixed', 1, ParameterDescriptor(read_only=True))
declare('range', 4, ParameterDescriptor(
    integer_range=[IntegerRange(from_value=0, to_value=10, step=2)]))
declare('float', 0.5, ParameterDescriptor(
    floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1.0, step=0.25)]))
for name in ('typed', 'dynamic', 'nothing'):
    show(('get', name), lambda: told(node.get_parameter(name)))
assign('fixed', 2)
for value in (2, 3, 10, 11, -1, 0):
    assign('range', value)
for value in (0.25, 0.3, 1.0, 1.1):
    assign('float', value)
assign('a', 'x')
assign('a')
for name in ('a', 'a', 'fixed'):
    show(('undeclare', name), node.undeclare_parameter, name)
node.declare_parameters('', [('g.a', 1), ('g.b', 'x'), ('g.c.d', 2.0)])
print({name: one.value for name, one in node.get_parameters_by_prefix('g').items()})
print(node.list_parameters(['g'], 1), node.list_parameters(['g'], 2))
log = []


def before(parameters):
    log.append(('before', [one.name for one in parameters]))
    return [*parameters, Parameter('g.b', value='added')]


def check(parameters):
    log.append(('check', [one.name for one in parameters]))
    return SetParametersResult(successful=parameters[0].value != 13, reason='unlucky')


def after(parameters):
    log.append(('after', [one.name for one in parameters]))


node.add_pre_set_parameters_callback(before)
node.add_on_set_parameters_callback(check)
node.add_post_set_parameters_callback(after)
assign('g.a', 2)
assign('g.a', 13)
print(log, node.get_parameter('g.b').value)
for _ in range(2):
    show('remove', node.remove_on_set_parameters_callback, check)


class Entity(ManagedEntity):
    def on_configure(self, state):
        print('entity configures', state)
        return TransitionCallbackReturn.SUCCESS


class Managed(LifecycleNode):
    result = TransitionCallbackReturn.SUCCESS

    def on_configure(self, state):
        print('configure', state)
        super().on_configure(state)
        return self.result

    def on_error(self, state):
        print('error', state)
        return TransitionCallbackReturn.SUCCESS


managed = Managed('managed')
talker = managed.create_lifecycle_publisher(String, 'x', 10)
for entity in (3, None, 'x', Entity()):
    show('add', managed.add_managed_entity, entity)
for step in ('configure', 'configure', 'activate', 'deactivate', 'cleanup', 'activate'):
    show(step, getattr(managed, f'trigger_{step}'))
    print(talker.is_activated, managed._state_machine.current_state)
for Managed.result in (TransitionCallbackReturn.FAILURE, TransitionCallbackReturn.ERROR):
    show('configure', managed.trigger_configure)
    print(managed._state_machine.current_state)
print(managed._state_machine.available_transitions)
rclpy.shutdown()
