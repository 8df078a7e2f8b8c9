"""The behaviour tables of the client core, `crates/rcl/tests/behaviour`, in Python."""

import contextlib
import json
import os
import threading
import time

import pytest
import rclpy
import rclpy.logging

from geometry_msgs.msg import PointStamped, TransformStamped
from graph_rows import Graph, WITHOUT_TYPE_DESCRIPTIONS
from message_filters import Cache, SimpleFilter
from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterEvent, SetParametersResult,
)
from rclpy import exceptions
from rclpy.clock import ClockChange, JumpThreshold, ROSClock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.exceptions import ROSInterruptException
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.logging_severity import LoggingSeverity
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Header
from tf2_py import BufferCore, TransformException

try:
    from pteros import _native
    from rclpy.lifecycle.state_machine import LifecycleStateMachine
except ImportError:
    # On the rclpy of ROS 2.
    import ros2_parts as _native
    from ros2_parts import LifecycleStateMachine

_IS_WHEEL = _native.__name__ != 'ros2_parts'
# The rows that ROS 2 answers otherwise, and those that it does not answer, with the reasons.
_DIFFERENT, _WITHOUT_ANSWER = ({
    row: reason for reason, rows in getattr(_native, name, {}).items() for row in rows
} for name in ('DIFFERENT', 'WITHOUT_ANSWER'))
_CRATES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STATUSES = (
    'unknown', 'accepted', 'executing', 'canceling', 'succeeded', 'canceled', 'aborted')


# The rows of rclcpp, whose rules Rust and C have.
_LEFT_OUT = ('rclcpp ', 'adaptive ')
_played = set()


def _table(name):
    path = os.path.join(_CRATES, 'rcl', 'tests', 'behaviour', name)
    with open(path, encoding='utf-8') as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith('#')]


def _parameters(row, *values, absent=None):
    _played.add(row)
    steps = row.partition('->')[0].strip()
    marks = []
    if steps in _DIFFERENT:
        marks.append(pytest.mark.xfail(strict=True, reason=_DIFFERENT[steps]))
    if steps in _WITHOUT_ANSWER:
        marks.append(pytest.mark.skip(reason=_WITHOUT_ANSWER[steps]))
    if absent:
        marks.append(pytest.mark.skip(reason=absent))
    return pytest.param(*values, id=row, marks=marks)


def test_every_row_is_played_or_of_another_library():
    tables = os.listdir(os.path.join(_CRATES, 'rcl', 'tests', 'behaviour'))
    rows = {row for name in tables for row in _table(name)}
    assert not [row for row in rows - _played if not row.startswith(_LEFT_OUT)]
    assert not [row for row in rows & _played if row.startswith(_LEFT_OUT)]
    questions = {row.partition('->')[0].strip() for row in rows}
    assert {*_DIFFERENT, *_WITHOUT_ANSWER} <= questions


def _rows(table, kind=''):
    rows = [row for row in _table(table) if row.startswith(kind)]
    assert rows
    for row in rows:
        steps, expected = row[len(kind):].split('->')
        # Behind "| rclpy" stands an answer of Python alone, and its reason.
        _, is_other, other = expected.partition('| rclpy ')
        expected = other.partition(':')[0] if is_other else expected
        yield _parameters(row, steps.split(), expected.split())


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
        with pytest.raises(_native.RCLError, match=f"'{last}' is not possible in|is not registered"):
            machine.trigger_transition_by_label(last, False)
        assert machine.current_state == state
        return
    if last:
        machine.trigger_transition_by_label(last, False)
    assert [machine.current_state[1]] == expected


@pytest.mark.parametrize('statuses, expected', list(_rows('goals.txt', 'goal ')))
def test_goal_transitions(statuses, expected):
    goals = _native.GoalTable(100)
    assert goals.accept(_id('a'), 0) == (True, None)
    assert goals.accept(_id('a'), 0) == (False, None)
    *before, last = map(_STATUSES.index, statuses)
    for status in before:
        goals.transition(_id('a'), status, 0)
    if expected == ['refused']:
        before = goals.status(_id('a'))
        with pytest.raises(_native.RCLError, match='6161: a goal cannot change|invalid transition'):
            goals.transition(_id('a'), last, 0)
        assert goals.status(_id('a')) == before
        return
    goals.transition(_id('a'), last, 0)
    assert [_STATUSES[goals.status(_id('a'))]] == expected


@pytest.mark.skipif(not _IS_WHEEL, reason='the table of rcl has no limit')
def test_a_full_goal_table_drops_the_goal_that_ended_first():
    goals = _native.GoalTable(100)
    for number in range(65536):
        assert goals.accept(number.to_bytes(16, 'big'), number) == (True, None)
    assert goals.is_full() and goals.accept(_id('a'), 0) == (False, None)
    for now, number in enumerate((7, 3)):
        for status in (2, 4):
            goals.transition(number.to_bytes(16, 'big'), status, now)
    assert not goals.is_full()
    assert goals.accept(_id('a'), 0) == (True, (7).to_bytes(16, 'big'))
    assert goals.accept(_id('b'), 0) == (True, (3).to_bytes(16, 'big'))
    assert goals.is_full() and not goals.contains((7).to_bytes(16, 'big'))


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
    assert not _IS_WHEEL or goals.next_expiry() == 100
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
        # ROS 2's node hands over the message.
        if _IS_WHEEL:
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
    for row in _table('parameters.txt'):
        kind, _, rest = row.partition(' ')
        if kind in kinds:
            question, expected = rest.split(' -> ')
            yield _parameters(row, kind, question, expected.strip())


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
# Seconds of the number 1 in time.txt.
_UNIT = 100
_DEADLINE_S = 20


class _Stage:
    """A simulated clock, and a node that is spun for every step."""

    def __init__(self, start):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, args=[])
        self.node = rclpy.create_node(
            'rows', context=self.context, parameter_overrides=WITHOUT_TYPE_DESCRIPTIONS)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.clock = ROSClock()
        self.clock._set_ros_time_is_active(True)
        self.play(start)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def time(self, word):
        return Time(
            nanoseconds=round(float(word) * _UNIT * 1e9), clock_type=self.clock.clock_type)

    def play(self, step):
        if step == 'shutdown':
            self.context.shutdown()
        elif step in ('on', 'off'):
            self.clock._set_ros_time_is_active(step == 'on')
        else:
            self.clock.set_ros_time_override(self.time(step))

    def spin(self):
        for _ in range(4):
            self.executor.spin_once(timeout_sec=0)


@pytest.mark.parametrize(
    'start, steps, expected',
    [_parameters(row.id, start, *row.values)
     for kind, start in (('timer ', '10'), ('unset ', '0')) for row in _rows('time.txt', kind)])
def test_timers(start, steps, expected):
    calls = []
    with _Stage(start) as stage:
        timer = stage.node.create_timer(
            1.0 * _UNIT, lambda: calls.append(1), clock=stage.clock)
        for step, count in zip(steps, expected, strict=True):
            if step in ('cancel', 'reset'):
                getattr(timer, step)()
            elif step.startswith('period='):
                timer.timer_period_ns = stage.time(step.partition('=')[2]).nanoseconds
            else:
                stage.play(step)
            stage.spin()
            assert len(calls) == int(count), step


def _wait_for(condition):
    deadline = time.monotonic() + _DEADLINE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def _sleepers(rate):
    return rate._sleepers if _IS_WHEEL else rate._num_sleepers


@pytest.mark.parametrize('steps, expected', list(_rows('time.txt', 'rate ')))
def test_rates(steps, expected):
    begin, ended = threading.Semaphore(0), []

    def loop():
        # The end of the test interrupts the last sleep.
        with contextlib.suppress(ROSInterruptException):
            while begin.acquire():
                rate.sleep()
                ended.append(1)

    with _Stage('10') as stage:
        rate = stage.node.create_rate(1 / _UNIT, clock=stage.clock)
        threading.Thread(target=loop, daemon=True).start()
        begun = 0
        for step, count in zip(steps, expected, strict=True):
            if step == 'sleep':
                begin.release()
                begun += 1
                assert _wait_for(lambda: _sleepers(rate) == 1 or len(ended) == begun)
            else:
                stage.play(step)
            stage.spin()
            assert _wait_for(lambda: len(ended) >= int(count)), step
            assert len(ended) == int(count), step


@pytest.mark.parametrize('steps, expected', list(_rows('time.txt', 'sleep ')))
def test_sleeps(steps, expected):
    results = []
    with _Stage('10') as stage:
        until, began = stage.time(steps[0]), threading.Event()

        def sleep():
            began.set()
            results.append(stage.clock.sleep_until(until, stage.context))

        thread = threading.Thread(target=sleep, daemon=True)
        thread.start()
        assert began.wait(_DEADLINE_S)
        if expected[0] == 'sleeping':
            # A switch or a shutdown counts from the begin of the sleep.
            thread.join(0.2)
        for step, state in zip([None, *steps[1:]], expected, strict=True):
            if step is not None:
                stage.play(step)
            if state == 'sleeping':
                assert not results, step
            else:
                thread.join(_DEADLINE_S)
                assert results == [state == 'true'], step


@pytest.mark.parametrize('steps, expected', list(_rows('time.txt', 'jump ')))
def test_jump_thresholds(steps, expected):
    words = dict(word.partition('=')[::2] for word in steps[0].split(','))
    with _Stage('10') as stage:
        forward, backward = (
            Duration(nanoseconds=sign * stage.time(words[name]).nanoseconds)
            if name in words else None for name, sign in (('forward', 1), ('backward', -1)))
        before, jumps = [], []
        handle = stage.clock.create_jump_callback(
            JumpThreshold(
                min_forward=forward, min_backward=backward, on_clock_change='change' in words),
            pre_callback=lambda: before.append(1), post_callback=jumps.append)
        for step, report in zip(steps[1:], expected, strict=True):
            before.clear()
            jumps.clear()
            stage.play(step)
            if report == '-':
                assert (before, jumps) == ([], []), step
                continue
            jump, = jumps
            assert before == [1]
            name = {
                ClockChange.ROS_TIME_ACTIVATED: 'on', ClockChange.ROS_TIME_DEACTIVATED: 'off',
            }.get(int(jump.clock_change))
            size = jump.delta.nanoseconds / (_UNIT * 1e9)
            assert (name or f'{size:g}') == report, step
        handle.unregister()


@pytest.mark.parametrize('steps, expected', list(_rows('time.txt', 'source ')))
def test_sources_of_time(steps, expected):
    with _Stage('0') as stage:
        source, clock = stage.node._time_source, stage.node.get_clock()
        for step, shown in zip(steps, expected, strict=True):
            if step in ('on', 'off'):
                stage.node.set_parameters([Parameter('use_sim_time', value=step == 'on')])
            else:
                source.clock_callback(ClockMessage(clock=stage.time(step).to_msg()))
            is_simulated = shown != 'system'
            assert clock.ros_time_is_active == is_simulated
            if is_simulated:
                assert clock.now() == stage.time(shown), step
            else:
                assert clock.now().nanoseconds > 1.5e18, step


def _filter_rows(kind):
    for row in _rows('filters.txt', kind):
        steps, expected = row.values
        yield _parameters(row.id, kind.strip(), steps[0], steps[1:], expected)


def _synchronizer(kind, size, words):
    inputs = max(2, *(ord(word[0]) - ord('a') + 1 for word in words if word != 'clear'))
    size, _, slop = size.partition(',')
    return _native.Synchronizer(kind, inputs, int(size), int(slop or 0))


@pytest.mark.parametrize(
    'kind, size, words, expected',
    [row for kind in ('exact ', 'slop ') for row in _filter_rows(kind)])
def test_synchronizers(kind, size, words, expected):
    synchronizer, sets = _synchronizer(kind, size, words), []
    for word in words:
        if word == 'clear':
            synchronizer.clear()
            continue
        stamp = int(word[1:])
        sets += synchronizer.add(ord(word[0]) - ord('a'), stamp, stamp)
    assert [','.join(map(str, each)) for each in sets] == expected


@pytest.mark.parametrize('kind, size, words, expected', list(_filter_rows('cache ')))
def test_caches(kind, size, words, expected):
    source = SimpleFilter()
    cache, answers = Cache(source, int(size)), []

    def at(word):
        return Time(nanoseconds=int(word), clock_type=ClockType.ROS_TIME)

    def text(message):
        return str(message.header.stamp.nanosec) if message is not None else '-'

    for word in words:
        question, _, value = word.partition('=')
        if word == 'clear':
            cache._cache.clear()
        elif not value:
            stamp = at(word).to_msg()
            source.signalMessage(PointStamped(header=Header(stamp=stamp)))
        elif question == 'span':
            found = cache.getInterval(*map(at, value.split('..')))
            answers.append(','.join(map(text, found)))
        else:
            find = {'before': cache.getElemBeforeTime, 'after': cache.getElemAfterTime}
            answers.append(text(find[question](at(value))))
    assert answers == expected


def _step_rows(table):
    absent = getattr(_native, 'WITHOUT_TABLES', {}).get(table)
    for row in _table(table):
        question, _, expected = row.partition(' -> ')
        _, is_other, other = expected.partition(' | rclpy ')
        expected = other.partition(':')[0] if is_other else expected
        yield _parameters(row, question.split('; '), expected, absent=absent)


def _transforms(kind, child, parent, *poses):
    for pose in poses:
        ahead, _, stamp = pose.partition('@')
        message = TransformStamped(
            header=Header(frame_id=parent, stamp=_seconds(stamp or '0').to_msg()),
            child_frame_id=child)
        message.transform.translation.x = float(ahead)
        yield message


def _seconds(word):
    return Time(nanoseconds=round(float(word) * 1e9))


@pytest.mark.parametrize('steps, expected', list(_step_rows('tf.txt')))
def test_transforms(steps, expected):
    buffer = BufferCore()
    *before, (kind, *words) = [step.split() for step in steps]
    for step in before:
        if step == ['clear']:
            buffer.clear()
            continue
        insert = buffer.set_transform if step[0] == 'set' else buffer.set_transform_static
        for message in _transforms(*step):
            insert(message, 'rows')
    look_up = {
        'lookup': buffer.lookup_transform_core, 'full': buffer.lookup_transform_full_core}[kind]
    try:
        found = look_up(*(_seconds(word) if word[0].isdigit() else word for word in words))
    except TransformException as error:
        found = f'{type(error).__name__} {error}'.splitlines()[0].strip()
    else:
        stamp = found.header.stamp
        found = f'{found.transform.translation.x:g}@{stamp.sec + stamp.nanosec / 1e9:g}'
    assert found == expected


@pytest.mark.parametrize('steps, expected', [
    row for table in ('graph', 'qos_overrides', 'content_filters', 'wait_sets')
    for row in _step_rows(table + '.txt')])
def test_nodes(steps, expected):
    graph = Graph()
    try:
        for step in steps[:-1]:
            graph.play(step)
        # A wait takes triggers, so it is asked for once.
        is_wait = steps[-1].startswith('wait ')
        found = [graph.answer(steps[-1])]
        assert is_wait or _wait_for(
            lambda: found.append(graph.answer(steps[-1])) or found[-3:] == [expected] * 3), found
        assert found[-1] == expected
    finally:
        graph.close()


def _log_level(step):
    kind, logger, *level = step.split()
    logger = '' if logger == 'root' else logger
    if kind == 'set':
        rclpy.logging.set_logger_level(logger, LoggingSeverity[level[0].upper()])
    elif kind == 'level':
        return rclpy.logging.get_logger_level(logger).name.lower()
    elif kind == 'effective':
        return rclpy.logging.get_logger_effective_level(logger).name.lower()
    else:
        is_enabled = RcutilsLogger(logger).is_enabled_for(LoggingSeverity[level[0].upper()])
        return 'yes' if is_enabled else 'no'


@pytest.mark.parametrize('steps, expected', list(_step_rows('log_levels.txt')))
def test_log_levels(steps, expected, empty_context):
    arguments = [word for step in steps if step.startswith('--') for word in step.split()]
    context, found = Context(), 'refused'
    try:
        context.init(['--ros-args', *arguments], initialize_logging=False)
        _native.configure_logging(context.handle)
        for step in steps[len(arguments) // 2:]:
            found = _log_level(step)
    except (_native.RCLError, RuntimeError):
        assert expected == 'refused'
    finally:
        context.try_shutdown()
        rclpy.logging.clear_config()
        _native.configure_logging(empty_context.handle)
    assert found == expected


def _name_rows():
    for row in _table('names.txt'):
        words, expected = row.split(' -> ')
        *rules, kind, name = words.split() if not words.endswith('node') else [*words.split(), '']
        yield _parameters(row, rules, kind, name, expected)


@pytest.mark.parametrize('rules, kind, name, expected', list(_name_rows()))
def test_names(rules, kind, name, expected, empty_context):
    arguments = [word for rule in rules for word in ('-r', rule)]
    node = Node(
        'talker', namespace='/ns', context=empty_context, enable_rosout=False,
        start_parameter_services=False, cli_args=['--ros-args', *arguments])
    try:
        if kind == 'node':
            found = node.get_fully_qualified_name()
        else:
            found = getattr(node, f'resolve_{kind}_name')(name)
    except _native.RCLError:
        found = 'invalid'
    finally:
        node.destroy_node()
    assert found == expected
