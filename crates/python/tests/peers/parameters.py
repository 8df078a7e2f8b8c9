"""Parameters of nodes: declarations, changes, callbacks, events and services."""

import re
import warnings
from array import array

from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterEvent, ParameterValue,
    SetParametersResult,
)
from rcl_interfaces.srv import (
    DescribeParameters, GetParameters, GetParameterTypes, ListParameters, SetParameters,
    SetParametersAtomically,
)
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_parameter_events
from show import show

warnings.simplefilter('ignore')
Type = Parameter.Type
rclpy.init(args=[
    'program', '--ros-args', '-p', 'i:=3', '-p', 'd:=2.5', '-p', 'b:=true', '-p', 's:=word',
    '-p', 'l:=[3, 1]', '-p', 'z.a:=1', '-p', 'a.z:=2'])
node = Node('n', namespace='ns', parameter_overrides=[
    Parameter('o', value=5), Parameter('os', value='5'), Parameter('i', value=4)])
free = Node('free', allow_undeclared_parameters=True)
auto = Node('auto', automatically_declare_parameters_from_overrides=True)


def told(parameter):
    return parameter.name, parameter.type_, parameter.value


def declare(name, *args, on=node, **kwargs):
    show(('declare', name), lambda: told(on.declare_parameter(name, *args, **kwargs)))


def results(found):
    # rclpy leaves names out of the list of undeclared parameters.
    return [
        (one.successful, re.sub(r'parameter\(s\): \[.*', '', one.reason)) for one in found]


def change(*values, on=node):
    show(('set', values), lambda: results(on.set_parameters(
        [Parameter(name, value=value) for name, value in values])))


def change_all(*values, on=node):
    show(('set all', values), lambda: results([on.set_parameters_atomically(
        [Parameter(name, value=value) for name, value in values])]))


def get(name, on=node):
    show(('get', name), lambda: told(on.get_parameter(name)))
    show(('type', name), lambda: on.get_parameter_type(name))
    show(('or', name), lambda: told(on.get_parameter_or(name, Parameter('alt', value=1))))


def described(one):
    return (one.name, one.type, one.description, one.read_only, one.dynamic_typing,
            [(r.from_value, r.to_value, r.step) for r in one.integer_range],
            [(r.from_value, r.to_value, r.step) for r in one.floating_point_range])


def describe(name, on=node):
    show(('describe', name), lambda: described(on.describe_parameter(name)))


D = ParameterDescriptor
# --- declarations, overrides, types
declare('i', 1)
declare('d', 1.0)
declare('b', False)
declare('s', 'x')
declare('l', [1])
declare('o', 1)
declare('os', 1)
declare('os', 'x')
declare('fresh', 1)
declare('fresh', 1)
declare('ignored.i', 1, ignore_override=True)
declare('typed', Type.DOUBLE)
declare('dyn', None, D(dynamic_typing=True))
declare('dyn2', 7, D(dynamic_typing=True))
declare('only name')
declare('', 1)
declare('none', None, D())
declare('both', Type.INTEGER, D(dynamic_typing=True))
declare('unset', Type.NOT_SET)
declare('wrong', {})
declare('mixed', [1, 'a'])
declare('fixed', 1, D(read_only=True, description='text'))
declare('bytes', [b'a', b'b'])
declare('empty', [])
declare('strings', ['a', 'ü'])
declare('bools', [True, False])
declare('doubles', [1.0, -0.5])
declare('ranged', 4, D(integer_range=[IntegerRange(from_value=0, to_value=10, step=2)]))
declare('reversed', 4, D(integer_range=[IntegerRange(from_value=10, to_value=0, step=3)]))
declare('outside', 40, D(integer_range=[IntegerRange(from_value=0, to_value=10, step=2)]))
declare('float', 0.5, D(floating_point_range=[
    FloatingPointRange(from_value=0.0, to_value=1.0, step=0.1)]))
declare('free float', 1e-7, D(floating_point_range=[
    FloatingPointRange(from_value=-1e20, to_value=1e20, step=0.0)]))
show('many', lambda: [told(one) for one in node.declare_parameters(
    'g', [('a', 1), ('b', 'x', D(description='b')), ('c.d', 2.0)])])
show('short', lambda: node.declare_parameters('g', [()]))
show('no name', lambda: node.declare_parameters('g', [(1, 2)]))
show('no descriptor', lambda: node.declare_parameters('g', [('e', 2, 3)]))
show('partly', lambda: node.declare_parameters('g', [('e', 2), ('a', 3)]))
for name in ('g.e', 'g.a', 'typed', 'dyn', 'dyn2', 'nothing', 'bytes', 'empty', 'strings'):
    get(name)
for name in ('i', 'typed', 'dyn', 'dyn2', 'fixed', 'ranged', 'float', 'nothing', 'g.b'):
    describe(name)
# --- setting
change(('i', 5))
change(('i', 5.0))
change(('d', 1))
change(('fixed', 2))
change(('nothing', 1))
change(('i', 6), ('nothing', 1), ('i', 7))
get('i')
change(('i', None))
change(('typed', None))
change(('typed', 1.5))
get('typed')
change(('dyn', None))
change(('dyn2', 'text'), ('dyn2', None))
get('dyn2')
for value in (0, 1, 2, 10, 11, -1):
    change(('ranged', value))
for value in (0, 3, 4, 9, 10):
    change(('reversed', value))
for value in (0.0, 0.1 + 0.2, 0.35, 0.5000001, 0.50001, 1.0000005, 1.1, -1e-9, float('nan'),
              float('inf')):
    change(('float', value))
for value in (1e20, 1e21, -1.5e-300, 1e22):
    change(('free float', value))
change_all(('i', 1), ('d', 9.5), ('fixed', 1))
change_all(('i', 'a'), ('fixed', 1))
change_all(('fixed', 1), ('nothing', 1))
change_all(('i', 1), ('i', 2))
change_all()
get('i')
show('no parameter', lambda: node.set_parameters([1]))
show('prefix', lambda: {n: told(p) for n, p in node.get_parameters_by_prefix('g').items()})
show('prefixes', lambda: sorted(node.get_parameters_by_prefix('')))
# --- lists
for prefixes, depth in (
        ([], 0), ([], 1), ([], 2), (['g'], 0), (['g'], 1), (['g.c'], 1), (['i', 'g'], 1),
        (['x'], 0)):
    show(('list', prefixes, depth), lambda: (
        lambda found: (list(found.names), list(found.prefixes)))(
            node.list_parameters(prefixes, depth)))
show('list', lambda: node.list_parameters('g', 1))
show('list', lambda: node.list_parameters([1], 1))
show('list', lambda: node.list_parameters([], 'x'))
show('list', lambda: node.list_parameters([], -1))
show('types', lambda: node.get_parameter_types(['i', 'd']))
show('types', lambda: node.get_parameter_types([1]))
show('values', lambda: [told(one) for one in node.get_parameters(['i', 'd'])])
# --- undeclaring and descriptors
for name in ('s', 'fixed', 'nothing', 's'):
    show(('undeclare', name), node.undeclare_parameter, name)
show('descriptor', lambda: node.set_descriptor('i', D(type=2, description='new')).integer_value)
show('descriptor', lambda: node.set_descriptor('i', D(type=4)).integer_value)
show('descriptor', lambda: node.set_descriptor('i', D(type=4), ParameterValue(
    type=4, string_value='alt')).string_value)
show('descriptor', lambda: node.set_descriptor('i', D(dynamic_typing=True)).string_value)
show('descriptor', lambda: node.set_descriptor('fixed', D(type=2)))
show('descriptor', lambda: node.set_descriptor('nothing', D(type=2)))
show('descriptor', lambda: node.set_descriptor('ranged', D(type=2, integer_range=[
    IntegerRange(from_value=0, to_value=1, step=1)])))
describe('i')
get('i')
# --- undeclared allowed, declared automatically
get('nothing', on=free)
describe('nothing', on=free)
change(('x', 1), ('x', 'a'), ('x', None), ('x', None), on=free)
get('x', on=free)
change_all(('y', 1), ('y', 2), on=free)
show('free', lambda: free.set_descriptor('z', D(type=2)).type)
for name in ('i', 'l', 'z.a', 's'):
    get(name, on=auto)
    describe(name, on=auto)
change(('i', 'text'), on=auto)
# --- callbacks, in order, with nested changes
log = []


def shown(value):
    # An array that another node set is an array.array in rclpy.
    return list(value) if isinstance(value, array) else value


def note(name, answer=None):
    def callback(parameters):
        log.append((name, [(one.name, shown(one.value)) for one in parameters]))
        return answer(parameters) if answer else None
    return callback


ok = SetParametersResult(successful=True)
owner = Node('owner', use_global_arguments=False)
owner.declare_parameter('a', 0)
owner.declare_parameter('b', 0)
events = []
listener = Node('listener')
listener.create_subscription(
    ParameterEvent, '/parameter_events', events.append, qos_profile_parameter_events)
owner.add_on_set_parameters_callback(note('on1', lambda _: ok))
owner.add_on_set_parameters_callback(note('on2', lambda found: SetParametersResult(
    successful=not any(one.value == 13 for one in found), reason='unlucky')))
owner.add_post_set_parameters_callback(note('post1'))
owner.add_post_set_parameters_callback(note('post2'))
change(('a', 1), on=owner)
change(('a', 13), on=owner)
declare('c', 13, on=owner)
declare('c', 1, on=owner)
declare('t', Type.INTEGER, on=owner)
pre = note('pre1', lambda found: [*found, Parameter('b', value=found[0].value + 1)])
owner.add_pre_set_parameters_callback(pre)
change(('a', 2), on=owner)
change_all(('a', 3), ('c', 4), on=owner)
nothing = note('pre2', lambda found: [])
owner.add_pre_set_parameters_callback(nothing)
change(('a', 5), on=owner)
owner.remove_pre_set_parameters_callback(pre)
change(('a', 6), on=owner)
change_all(on=owner)
owner.remove_pre_set_parameters_callback(nothing)
show('remove', lambda: owner.remove_pre_set_parameters_callback(nothing))
show('add', lambda: owner.add_on_set_parameters_callback(1))


def follow(parameters):
    log.append(('follow', [one.name for one in parameters]))
    if parameters[0].name == 'a':
        owner.set_parameters([Parameter('b', value=parameters[0].value * 10)])


owner.add_post_set_parameters_callback(follow)
change(('a', 7), on=owner)
owner.remove_post_set_parameters_callback(follow)
print(log)
log.clear()
get('b', on=owner)


def fail(parameters):
    raise KeyError('broken')


for add, remove in (
        (owner.add_pre_set_parameters_callback, owner.remove_pre_set_parameters_callback),
        (owner.add_on_set_parameters_callback, owner.remove_on_set_parameters_callback),
        (owner.add_post_set_parameters_callback, owner.remove_post_set_parameters_callback)):
    add(fail)
    change(('a', owner.get_parameter('a').value + 1), on=owner)
    remove(fail)
    get('a', on=owner)
wrong = note('wrong', lambda _: True)
owner.add_on_set_parameters_callback(wrong)
change(('a', 1), on=owner)
owner.remove_on_set_parameters_callback(wrong)
print(log)
log.clear()
# --- the services
executor = SingleThreadedExecutor()
for one in (owner, listener):
    executor.add_node(one)


def call(kind, name, **request):
    client = listener.create_client(kind, f'/owner/{name}')
    client.wait_for_service()
    future = client.call_async(kind.Request(**request))
    executor.spin_until_future_complete(future, 10)
    listener.destroy_client(client)
    return future.result()


def message(name, value):
    return Parameter(name, value=value).to_parameter_msg()


owner.declare_parameter('list', [1.0, 2.0])
print([one.type for one in call(GetParameters, 'get_parameters', names=['a', 'list', 'b']).values])
print(call(GetParameters, 'get_parameters', names=['a', 'no']).values)
print(call(GetParameters, 'get_parameters', names=['a', 't']).values)
print(call(GetParameterTypes, 'get_parameter_types', names=['a', 't', 'list']).types)
print(call(GetParameterTypes, 'get_parameter_types', names=['a', 'no']).types)
print([described(one) for one in call(
    DescribeParameters, 'describe_parameters', names=['a', 't']).descriptors])
print(call(DescribeParameters, 'describe_parameters', names=['a', 'no']).descriptors)
print(call(ListParameters, 'list_parameters', prefixes=[], depth=1).result.names)
print(call(ListParameters, 'list_parameters', prefixes=['a'], depth=0).result.names)
print(results(call(SetParameters, 'set_parameters', parameters=[
    message('a', 3), message('a', 13), message('a', 'x'), message('no', 1),
    message('t', 8)]).results))
print(results([call(SetParametersAtomically, 'set_parameters_atomically', parameters=[
    message('a', 4), message('b', 5)]).result]))
print(results([call(SetParametersAtomically, 'set_parameters_atomically', parameters=[
    message('a', 5), message('no', 5), message('no2', 5)]).result]))
print(results([call(SetParametersAtomically, 'set_parameters_atomically', parameters=[]).result]))
print(results([call(SetParametersAtomically, 'set_parameters_atomically', parameters=[
    message('list', [3.0])]).result]))
print(list(owner.get_parameter('list').value))
print(log)
for _ in range(20):
    executor.spin_once(0.1)


def names(found):
    return [(one.name, one.value.type, one.value.integer_value) for one in found]


for event in events:
    if event.node == '/owner':
        print(event.stamp.sec > 0, names(event.new_parameters), names(event.changed_parameters),
              names(event.deleted_parameters))
executor.shutdown()
for one in (node, free, auto, owner, listener):
    one.destroy_node()
rclpy.shutdown()
