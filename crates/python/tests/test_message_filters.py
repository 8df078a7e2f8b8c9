"""Synchronizers of messages: which sets they pass on, and in which order."""

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from message_filters import ApproximateTimeSynchronizer, SimpleFilter, TimeSynchronizer
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


@pytest.mark.parametrize('stream, expected', [
    ('a1 b1 a2 b2', [(1, 1), (2, 2)]),
    ('a1 a2 b1 b2', [(1, 1), (2, 2)]),
    # What waits is dropped when a later set is complete.
    ('a1 a2 b2 b1', [(2, 2)]),
    ('a3 b1 a1 b3 a2 b2', [(1, 1), (3, 3), (2, 2)]),
    ('a1 a2 a3 b2 b1 b3', [(2, 2), (3, 3)]),
    ('a1 b2 b3 a3 a2 b1', [(3, 3)]),
    ('a1 b1 c2 a2 b2 c1', [(2, 2, 2)]),
    # The first set again, from all filters.
    ('a2 b2 a1 b1', [(2, 2), (1, 1)]),
    ('a1 a1 b1 b1', [(1, 1)]),
])
def test_an_exact_synchronizer_drops_what_is_older_than_a_set(stream, expected):
    assert sets(TimeSynchronizer, stream, 10) == expected


def test_a_full_queue_drops_the_oldest():
    assert sets(TimeSynchronizer, 'a1 a2 a3 b1 b2 b3', 2) == [(2, 2), (3, 3)]
    assert sets(TimeSynchronizer, 'a3 a2 a1 b1 b2 b3', 2) == [(2, 2), (3, 3)]


@pytest.mark.parametrize('stream, slop, expected', [
    ('a100 b105', 0.01, [(100, 105)]),
    # As in ROS 2, the difference must be smaller than the slop.
    ('a100 b110', 0.01, []),
    ('a100 b100', 0.0, []),
    ('a100 a103 b104', 0.01, [(103, 104)]),
    ('a100 a103 b104 b99', 0.01, [(103, 104), (100, 99)]),
    ('a100 b104 c108', 0.01, [(100, 104, 108)]),
    ('a100 b104 c111', 0.01, []),
])
def test_an_approximate_synchronizer_passes_the_closest_set(stream, slop, expected):
    assert sets(ApproximateTimeSynchronizer, stream, 10, slop) == expected
