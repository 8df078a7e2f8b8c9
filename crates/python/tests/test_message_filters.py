"""Synchronizers of messages: which sets they pass on, and in which order."""

import gc
import threading
from types import SimpleNamespace

import pytest
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from message_filters import (
    ApproximateTimeSynchronizer, Cache, SimpleFilter, Subscriber, TimeSynchronizer)
from pteros import _native
from rclpy.clock_type import ClockType
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Header


def message(milliseconds):
    return PointStamped(header=Header(stamp=Time(nanosec=milliseconds * 1_000_000)))


def sets(synchronizer_class, stream, *args):
    """Return the sets of a stream such as ``'a1 b1'``: a filter and its time each."""
    names = sorted({word[0] for word in stream.split()})
    filters = {name: SimpleFilter() for name in names}
    passed = []
    synchronizer = synchronizer_class(list(filters.values()), *args)
    synchronizer.registerCallback(lambda *messages: passed.append(
        tuple(one.header.stamp.nanosec // 1_000_000 for one in messages)))
    for word in stream.split():
        filters[word[0]].signalMessage(message(int(word[1:])))
    return passed


# The rows of filters.txt are run by test_behaviour.py.
def test_synchronizers_join_the_messages_of_filters():
    assert sets(TimeSynchronizer, 'a1 a2 b2 b1', 10) == [(2, 2)]
    assert sets(TimeSynchronizer, 'a1 a2 a3 b1 b2 b3', 2) == [(2, 2), (3, 3)]
    stream = 'a100 a103 b104 b99'
    assert sets(ApproximateTimeSynchronizer, stream, 10, 0.01) == [(103, 104), (100, 99)]


@pytest.mark.parametrize('clock_type', list(ClockType)[1:])
def test_a_cache_returns_stamps_of_the_clock_that_they_were_given_with(clock_type):
    def at(seconds):
        return rclpy.time.Time(seconds=seconds, clock_type=clock_type)

    cache = Cache(SimpleFilter(), 3)
    for seconds in (2, 4, 3):
        cache.add(SimpleNamespace(header=SimpleNamespace(stamp=at(seconds))))
    assert (cache.getOldestTime(), cache.getLastestTime()) == (at(2), at(4))
    assert [cache.getElemAfterTime(at(2.5)).header.stamp] == cache.cache_times[1:2] == [at(3)]
    assert cache.getElemBeforeTime(at(1)) is None
    assert len(cache.getInterval(at(2), at(3))) == 2


def test_a_jump_back_of_the_clock_drops_what_waits():
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    node = rclpy.create_node('joined', context=context)
    node.set_parameters([Parameter('use_sim_time', value=True)])
    set_clock = node._time_source.clock_callback
    set_clock(Clock(clock=Time(sec=100)))
    a, b = (Subscriber(node, PointStamped, topic) for topic in 'ab')
    passed = []
    cache = Cache(a, 10)
    synchronizer = TimeSynchronizer([cache, b], 2)
    synchronizer.registerCallback(lambda *messages: passed.append(messages))
    a.callback(message(98))
    a.callback(message(99))
    set_clock(Clock(clock=Time(sec=10)))
    assert cache.getLast() is None
    a.callback(message(9))
    b.callback(message(9))
    assert len(passed) == 1
    assert cache.getLastestTime() == cache.getOldestTime()
    assert cache.getLastestTime().nanoseconds == 9_000_000
    node.destroy_node()
    context.try_shutdown()


class FakeClock:
    """A clock that keeps its jump callbacks."""

    def __init__(self):
        self.handle, self.callbacks, self.count = self, {}, 0

    def create_jump_callback(self, threshold, *, post_callback):
        self.count += 1
        self.callbacks[self.count] = post_callback
        return SimpleNamespace(_callback_id=self.count)

    def remove_clock_callback(self, number):
        del self.callbacks[number]


def test_a_clock_keeps_nothing_of_filters_that_ended():
    source, clock = SimpleFilter(), FakeClock()
    source.node = SimpleNamespace(get_clock=lambda: clock)
    filters = [Cache(source, 1), TimeSynchronizer([source, source], 1)]
    assert len(clock.callbacks) == 3
    filters.clear()
    source.callbacks.clear()
    gc.collect()
    assert not clock.callbacks


def test_sets_of_two_threads_keep_their_order_and_do_not_overlap():
    a, b = SimpleFilter(), SimpleFilter()
    synchronizer = TimeSynchronizer([a, b], 10)
    begun, notes = threading.Event(), []

    def callback(first, _):
        stamp = first.header.stamp.nanosec // 1_000_000
        notes.append(('begin', stamp))
        if stamp == 1:
            begun.set()
            # The other thread could pass its set on meanwhile.
            other.join(0.2)
        notes.append(('end', stamp))

    def pass_second():
        begun.wait()
        b.signalMessage(message(2))

    synchronizer.registerCallback(callback)
    other = threading.Thread(target=pass_second)
    other.start()
    a.signalMessage(message(1))
    a.signalMessage(message(2))
    b.signalMessage(message(1))
    other.join()
    assert notes == [('begin', 1), ('end', 1), ('begin', 2), ('end', 2)]


class Owner:
    """Messages of its filters refer to it: a cycle that only the collector can end."""

    def __init__(self, ended):
        self.ended = ended

    def __del__(self):
        self.ended.append(self)


@pytest.mark.parametrize('make', [
    lambda: _native.MessageCache(9),
    lambda: _native.Synchronizer('exact', 2, 9),
    lambda: _native.Synchronizer('slop', 2, 9, 5),
])
def test_a_cycle_through_a_filter_is_collected(make):
    ended = []
    owner = Owner(ended)
    owner.filter = make()
    for stamp in range(3):
        arguments = (stamp, owner)
        if not isinstance(owner.filter, _native.MessageCache):
            arguments = (0, *arguments)
        owner.filter.add(*arguments)
    del owner, arguments
    gc.collect()
    assert len(ended) == 1


def test_the_end_of_a_message_uses_the_filter_that_dropped_it():
    cache = _native.MessageCache(1)
    seen = []

    class Message:
        def __del__(self):
            seen.append(len(cache.messages()))

    cache.add(1, Message())
    cache.add(2, 'later')
    assert seen == [1]
    cache.add(3, Message())
    cache.clear()
    assert seen == [1, 0]


def test_the_collector_runs_while_threads_change_filters():
    """A message that one pass of the collector misses would end too early."""
    synchronizer = _native.Synchronizer('exact', 2, 50)
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect(0)

    collector = threading.Thread(target=collect)
    collector.start()
    for stamp in range(3000):
        synchronizer.add(0, stamp, [stamp])
        if stamp % 3 == 0:
            assert synchronizer.add(1, stamp, {'stamp': stamp}) == [
                ([stamp], {'stamp': stamp})]
    stop.set()
    collector.join()
