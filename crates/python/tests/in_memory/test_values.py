"""Values and helpers: futures, times, QoS, log filters, the lifecycle, YAML."""

import threading

import fake_native
import pytest
import rclpy
import rclpy.logging
from rclpy.clock_type import ClockType
from rclpy.duration import Duration, Infinite
from rclpy.qos import HistoryPolicy, QoSPresetProfiles, QoSProfile, ReliabilityPolicy
from rclpy.subscription import _takes_arguments
from rclpy.task import Future, Task
from rclpy.time import Time
from rosidl_parser.definition import BasicType, BoundedSequence, UnboundedSequence
from rosidl_runtime_py import convert, yaml_text


def test_a_future_calls_back_once_and_in_order():
    future = Future()
    seen = []
    future.add_done_callback(lambda _: seen.append(1))
    future.add_done_callback(lambda _: seen.append(2))
    future.set_result('x')
    assert seen == [1, 2]
    future.add_done_callback(lambda _: seen.append(3))
    assert seen == [1, 2, 3]


def test_an_exception_of_a_done_callback_is_a_warning():
    future = Future()
    future.add_done_callback(lambda _: 1 / 0)
    with pytest.warns(UserWarning, match='division by zero'):
        future.set_result(None)


def test_an_exception_that_nobody_fetched_is_printed(capsys):
    future = Future()
    future.set_exception(ValueError('lost'))
    del future
    assert 'lost' in capsys.readouterr().err


def test_two_threads_do_not_step_a_task_together():
    inside = threading.Event()
    leave = threading.Event()
    runs = []

    def handler():
        runs.append(1)
        inside.set()
        leave.wait(10)

    task = Task(handler)
    thread = threading.Thread(target=task)
    thread.start()
    assert inside.wait(10)
    task()
    leave.set()
    thread.join(10)
    assert task.done() and runs == [1]


@pytest.mark.parametrize('callback, one, two', [
    (lambda message: None, True, False),
    (lambda message, info: None, False, True),
    (lambda message, info=None: None, True, True),
    (lambda *args: None, True, True),
    (lambda message, *, key: None, False, False),
    (print, True, True),
])
def test_arguments_that_a_callback_takes(callback, one, two):
    assert (_takes_arguments(callback, 1), _takes_arguments(callback, 2)) == (one, two)


def test_a_bound_method_takes_its_arguments_without_self():
    class Node:
        def callback(self, message):
            pass

    assert _takes_arguments(Node().callback, 1)
    assert not _takes_arguments(Node().callback, 2)


def test_times_of_different_clocks_are_not_compared():
    with pytest.raises(TypeError, match='different clock types'):
        Time(seconds=1) < Time(seconds=1, clock_type=ClockType.STEADY_TIME)


def test_time_arithmetic():
    time = Time(seconds=3, nanoseconds=5)
    assert (time - Time(seconds=1)).nanoseconds == 2_000_000_005
    assert (time - Duration(seconds=3)).nanoseconds == 5
    assert (time + Duration(seconds=-1)).seconds_nanoseconds() == (2, 5)
    with pytest.raises(ValueError, match='negative'):
        time - Duration(seconds=4)
    with pytest.raises(OverflowError):
        time + Infinite


def test_a_profile_needs_a_depth():
    with pytest.raises(Exception, match='History and/or depth'):
        QoSProfile()
    with pytest.raises(AssertionError, match="no policy 'deph'"):
        QoSProfile(deph=1)
    assert QoSProfile(depth=3).history is HistoryPolicy.KEEP_LAST
    assert QoSPresetProfiles.get_from_short_key('SENSOR_data').depth == 5


def test_the_old_names_of_policies_warn():
    with pytest.warns(UserWarning, match='deprecated'):
        value = ReliabilityPolicy.RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT
    assert value is ReliabilityPolicy.BEST_EFFORT


def test_a_call_site_logs_once():
    logger = rclpy.logging.get_logger('once')
    fake_native.lines.clear()
    assert [logger.info(f'{number}', once=True) for number in range(3)] == [True, False, False]
    assert fake_native.lines == [('once', 20, '0')]


def test_a_call_site_below_the_level_may_change_its_severity():
    logger = rclpy.logging.get_logger('wrapped')

    def say(severity):
        return logger.log('text', severity)

    levels = rclpy.logging.LoggingSeverity
    assert [say(levels.DEBUG), say(levels.INFO), say(levels.INFO)] == [False, True, True]
    with pytest.raises(ValueError, match='severity'):
        say(levels.WARN)


def test_a_call_site_keeps_its_severity_and_filters():
    logger = rclpy.logging.get_logger('fixed')
    with pytest.raises(ValueError, match='severity cannot be changed'):
        for severity in (20, 30):
            logger.log('text', severity)
    with pytest.raises(ValueError, match='parameters cannot be changed'):
        for period in (1, 2):
            logger.info('text', throttle_duration_sec=period)
    with pytest.raises(TypeError, match='"twice" is not one of the recognized'):
        logger.info('text', twice=True)


@pytest.mark.parametrize('value, text', [
    ('plain text', 'plain text'), ('', "''"), ('true', "'true'"), ('1.5', "'1.5'"),
    ('a: b', "'a: b'"), ("it's", "it's"), ('-x', "'-x'"), ('line\nbreak', '"line\\nbreak"'),
    (1e20, '1.0e+20'), (float('inf'), '.inf'), (None, 'null'), (True, 'true'),
    (1e-7, '1.0e-07'), ('y', "'y'"), ('0483', "'0483'"), ('1e3', "'1e3'"), ('0o7', "'0o7'"),
    ('12:30:45', "'12:30:45'"), ('nan', 'nan'), ('.nan', "'.nan'"), ('1_000', "'1_000'"),
    ('a\u200bb', '"a\\u200Bb"'),
])
def test_yaml_scalars(value, text):
    assert yaml_text.block(value) == text + '\n'


class _Bounded:
    """A message with a bounded sequence and bytes, as generated classes are."""

    SLOT_TYPES = (
        BoundedSequence(BasicType('int32'), 3), UnboundedSequence(BasicType('octet')),
        BasicType('octet'))

    def __init__(self):
        self.some, self.bytes, self.byte = [], [b'\x01', b'a'], b"'"

    @staticmethod
    def get_fields_and_field_types():
        return {'some': 'sequence<int32, 3>', 'bytes': 'sequence<octet>', 'byte': 'octet'}


def test_csv_and_summaries_are_those_of_rosidl_runtime_py():
    message = _Bounded()
    assert convert.message_to_csv(message) == "b'\\x01',b'a',b\"'\""
    some, octets = '<sequence type: int32[3], length: 0>', '<sequence type: octet, length: 2>'
    assert convert.message_to_csv(message, no_arr=True) == f'{some},{octets},b"\'"'
    values = convert.message_to_ordereddict(message, no_arr=True)
    assert list(values.values()) == [some, octets, "'"]
    assert convert.message_to_csv(message, truncate_length=0).startswith("...,b'...'")


def test_yaml_blocks():
    value = {'a': [1, {'b': 2, 'c': []}], 'd': {}, 'e': {'f': [[1, 2]]}}
    assert yaml_text.block(value) == (
        'a:\n- 1\n- b: 2\n  c: []\nd: {}\ne:\n  f:\n  - - 1\n    - 2\n')
    assert yaml_text.flow(value) == '{a: [1, {b: 2, c: []}], d: {}, e: {f: [[1, 2]]}}'
