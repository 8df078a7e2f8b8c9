"""The behaviour tables of the client core, `crates/rcl/tests/behaviour`, in Python."""

import json
import os

import pytest

from pteros import _native
from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterEvent, SetParametersResult,
)
from rclpy import exceptions
from rclpy.context import Context
from rclpy.lifecycle.state_machine import LifecycleStateMachine
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message

_CRATES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STATUSES = (
    'unknown', 'accepted', 'executing', 'canceling', 'succeeded', 'canceled', 'aborted')


def _rows(table, kind=''):
    path = os.path.join(_CRATES, 'rcl', 'tests', 'behaviour', table)
    with open(path, encoding='utf-8') as lines:
        rows = [line for line in lines if line.startswith(kind) and not line.startswith('#')]
    assert rows
    for row in rows:
        steps, expected = row[len(kind):].split('->')
        yield pytest.param(steps.split(), expected.split(), id=row.strip())


def _id(name):
    return bytes(16) if name == '-' else name.encode() * 16


def _names(ids):
    return [each[:1].decode() for each in ids]


@pytest.mark.parametrize('labels, expected', list(_rows('lifecycle.txt')))
def test_lifecycle(labels, expected):
    machine = LifecycleStateMachine()
    *before, last = labels or ['']
    for label in before:
        machine.trigger_transition_by_label(label, False)
    if expected == ['refused']:
        state = machine.current_state
        with pytest.raises(_native.RCLError, match=f"'{last}' is not possible in the state"):
            machine.trigger_transition_by_label(last, False)
        assert machine.current_state == state
        return
    if last:
        machine.trigger_transition_by_label(last, False)
    assert [machine.current_state[1]] == expected


@pytest.mark.parametrize('statuses, expected', list(_rows('goals.txt', 'goal ')))
def test_goal_transitions(statuses, expected):
    goals = _native.GoalTable(100)
    assert goals.accept(_id('a'), 0)
    assert not goals.accept(_id('a'), 0)
    *before, last = map(_STATUSES.index, statuses)
    for status in before:
        goals.transition(_id('a'), status, 0)
    if expected == ['refused']:
        before = goals.status(_id('a'))
        with pytest.raises(_native.RCLError, match='6161: a goal cannot change from'):
            goals.transition(_id('a'), last, 0)
        assert goals.status(_id('a')) == before
        return
    goals.transition(_id('a'), last, 0)
    assert [_STATUSES[goals.status(_id('a'))]] == expected


def _four_goals():
    goals = _native.GoalTable(100)
    for stamp, name in ((10, 'a'), (20, 'b'), (30, 'c'), (40, 'd')):
        goals.accept(_id(name), stamp)
    for name, status in (('a', 2), ('c', 3), ('d', 2), ('d', 4)):
        goals.transition(_id(name), status, 0)
    return goals


@pytest.mark.parametrize('request_, expected', list(_rows('goals.txt', 'cancel ')))
def test_cancel_rules(request_, expected):
    name, stamp = request_
    code, selected = _four_goals().select_for_cancel(_id(name), int(stamp))
    assert [str(code), *_names(selected)] == expected


@pytest.mark.parametrize('time, expected', list(_rows('goals.txt', 'expire ')))
def test_result_expiry(time, expected):
    goals = _four_goals()
    assert goals.next_expiry() == 100
    gone = _names(goals.expire(int(time[0])))
    assert [name for name in 'abcd' if goals.contains(_id(name))] == expected
    assert sorted(gone + expected) == list('abcd')


def _value(text):
    if text == 'none':
        return None
    value = _native.load_yaml(text)
    # Without the sign of its exponent YAML 1.1 has no number.
    return float(text) if isinstance(value, str) and text in ('1e-07', '-1e-07', 'nan') else value


def _shown(value):
    if value is None:
        return 'none'
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(_shown, value))}]'
    if isinstance(value, float):
        return 'NaN' if value != value else repr(value)
    return json.dumps(value)


def _pair(text):
    name, _, value = text.partition('=')
    return Parameter(name, value=_value(value))


_TYPE_NAMES = [kind.name.lower().replace('_set', ' set') for kind in Parameter.Type]
_OWN = ('use_sim_time', 'start_type_description_service')


def _error_kind(error):
    text = str(error)
    if isinstance(error, exceptions.InvalidParameterValueException):
        reason = text.partition('Reason: ')[2].rpartition(':')[0]
        return 'out of range' if 'range' in reason else reason
    return {
        exceptions.ParameterAlreadyDeclaredException: 'already declared',
        exceptions.ParameterNotDeclaredException: 'not declared',
        exceptions.ParameterUninitializedException: 'no value',
        exceptions.InvalidParameterTypeException: 'wrong type',
        exceptions.ParameterImmutableException: 'read-only',
    }[type(error)]


class _Script:
    """A node on which the steps of a row run."""

    def __init__(self, node):
        self.node = node
        self.log = []
        node._parameter_event_publisher = self

    def publish(self, event):
        event = deserialize_message(event, ParameterEvent)
        self.log.append('event')
        for sign, parameters in (
                ('+', event.new_parameters), ('~', event.changed_parameters),
                ('-', event.deleted_parameters)):
            self.log.extend(sign + parameter.name for parameter in parameters)

    def declare(self, name, default, *options):
        descriptor = ParameterDescriptor()
        for option in options:
            if option == 'dynamic':
                descriptor.dynamic_typing = True
            elif option == 'read_only':
                descriptor.read_only = True
            elif option != 'ignore':
                low, high, step = map(_value, option.partition('=')[2].split(':'))
                kind, field = (
                    (FloatingPointRange, 'floating_point_range') if isinstance(low, float)
                    else (IntegerRange, 'integer_range'))
                setattr(descriptor, field, [kind(from_value=low, to_value=high, step=step)])
        value = (Parameter.Type[default[1:].upper()] if default.startswith(':')
                 else _value(default))
        return _shown(self.node.declare_parameter(
            name, value, descriptor, ignore_override='ignore' in options).value)

    def set(self, *pairs):
        result = self.node.set_parameters_atomically([_pair(pair) for pair in pairs])
        return 'ok' if result.successful else result.reason

    def undeclare(self, name):
        self.node.undeclare_parameter(name)
        return 'ok'

    def get(self, name):
        return _shown(self.node.get_parameter(name).value)

    def type(self, name):
        return str(self.node.get_parameter_type(name))

    def describe(self, name):
        found = self.node.describe_parameter(name)
        return ' '.join([
            found.name or '-', _TYPE_NAMES[found.type], *(['read_only'] * found.read_only),
            *(['dynamic'] * found.dynamic_typing)])

    def list(self, prefix, depth):
        found = self.node.list_parameters([] if prefix == '-' else [prefix], int(depth))
        return ' '.join([
            *(name for name in found.names if name not in _OWN), '/', *found.prefixes]).strip()

    def callbacks(self):
        for number in '12':
            self.node.add_on_set_parameters_callback(
                lambda _, word='on' + number: self._accept(word))
            self.node.add_post_set_parameters_callback(
                lambda _, word='post' + number: self.log.append(word))

    def _accept(self, word):
        self.log.append(word)
        return SetParametersResult(successful=True)

    def append(self, pair):
        self.node.add_pre_set_parameters_callback(lambda given: [*given, _pair(pair)])

    def clear(self):
        self.node.add_pre_set_parameters_callback(lambda given: [])

    def refuse(self, text):
        self.node.add_on_set_parameters_callback(lambda given: SetParametersResult(
            successful=all(one.value != _value(text) for one in given), reason='refused'))

    def follow(self, pair):
        def callback(given):
            self.node.remove_post_set_parameters_callback(callback)
            self.node.set_parameters([_pair(pair)])
        self.node.add_post_set_parameters_callback(callback)


def _parameter_rows(*kinds):
    path = os.path.join(_CRATES, 'rcl', 'tests', 'behaviour', 'parameters.txt')
    with open(path, encoding='utf-8') as lines:
        for row in lines:
            kind, _, rest = row.strip().partition(' ')
            if kind in kinds:
                question, expected = rest.split(' -> ')
                yield pytest.param(kind, question, expected.strip(), id=row.strip())


@pytest.mark.parametrize('rule, text, expected', list(_parameter_rows('rcl', 'yaml')))
def test_texts_of_parameters(rule, text, expected):
    assert _shown(_native.read_plain_scalar(text, rule == 'rcl')) == expected


@pytest.fixture(scope='module')
def empty_context():
    context = Context()
    context.init([])
    yield context
    context.shutdown()


@pytest.mark.parametrize('rules, question, expected', list(_parameter_rows('both', 'rclpy')))
def test_parameters(rules, question, expected, empty_context):
    steps = [step.strip() for step in question.split(';')]
    overrides = [step.partition(' ')[2] for step in steps if step.startswith('override ')]
    arguments = [word for text in overrides for word in ('-p', text)]
    node = Node(
        'node', context=empty_context, cli_args=['--ros-args', *arguments], enable_rosout=False,
        start_parameter_services=False, allow_undeclared_parameters='undeclared' in steps,
        automatically_declare_parameters_from_overrides='automatic' in steps)
    script = _Script(node)
    found = ''
    for step in steps:
        name, *words = step.split()
        script.log.clear()
        if name in ('override', 'undeclared', 'automatic'):
            continue
        try:
            found = getattr(script, name)(*words)
        except exceptions.ParameterException as error:
            found = _error_kind(error)
    node.destroy_node()
    assert ' | '.join([found, *[' '.join(script.log)] * bool(script.log)]) == expected
