"""Filters of messages: caches, and synchronizers of several topics by time stamps."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref

import rclpy.logging
from pteros import _native
from rclpy.clock import JumpThreshold, ROSClock
from rclpy.duration import Duration
from rclpy.impl.errors import InvalidHandle
from rclpy.time import Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

__all__ = [
    'ApproximateTimeSynchronizer', 'Cache', 'SimpleFilter', 'Subscriber', 'TimeSynchronizer',
]


def _stamp(message: Any, allow_headerless: bool, logger_name: str) -> Optional[Time]:
    """Return the time of a message's header, or now for a message without one if allowed."""
    stamp = getattr(getattr(message, 'header', None), 'stamp', None)
    if stamp is None:
        if allow_headerless:
            return ROSClock().now()
        rclpy.logging.get_logger(logger_name).warn(
            f'a message of type {type(message).__name__} has no header with a stamp and is '
            'dropped; allow_headerless=True uses the time of its arrival')
        return None
    return stamp if hasattr(stamp, 'nanoseconds') else Time.from_msg(stamp)


class SimpleFilter:
    """Base of the filters: calls registered callbacks with its output."""

    def __init__(self) -> None:
        self.callbacks: Dict[int, Tuple[Callable[..., Any], Tuple]] = {}
        self._ids = itertools.count()

    def registerCallback(self, cb: Callable[..., Any], *args: Any) -> int:
        """
        Add a callback.

        :param cb: Called with the messages of the output, then ``args``.
        :returns: the number of the callback.
        """
        number = next(self._ids)
        self.callbacks[number] = (cb, args)
        return number

    def signalMessage(self, *msg: Any) -> None:
        """Call the callbacks with an output."""
        for callback, args in list(self.callbacks.values()):
            callback(*(msg + args))


class Subscriber(SimpleFilter):
    """The messages of a topic. Attributes of the subscription are attributes of the filter."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """
        Subscribe to a topic.

        :param args: The node, and the message class and topic of ``Node.create_subscription``.
        :param kwargs: Its other parameters; ``qos_profile`` is 10 unless given.
        """
        super().__init__()
        self.node, msg_type, self.topic, *rest = args
        if rest:
            kwargs['qos_profile'] = rest[0]
        kwargs.setdefault('qos_profile', 10)
        self.sub = self.node.create_subscription(msg_type, self.topic, self.callback, **kwargs)

    def callback(self, msg: Any) -> None:
        """Pass a message on."""
        self.signalMessage(msg)

    def getTopic(self) -> str:
        """Return the topic."""
        return self.topic

    def __getattr__(self, key: str) -> Any:
        if key == 'sub':
            raise AttributeError(key)
        return getattr(self.sub, key)


def _clear_after_jumps(
    f: SimpleFilter, keeper: Union[_native.Synchronizer, _native.MessageCache],
) -> Any:
    """Clear what is kept when the clock of a subscriber's node goes back, or has another source."""
    node = getattr(f, 'node', None)
    if not hasattr(node, 'get_clock'):
        return None
    weak_keeper = weakref.ref(keeper)

    def clear(_: Any) -> None:
        keeper = weak_keeper()
        if keeper is not None:
            keeper.clear()

    threshold = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1))
    clock = node.get_clock()
    handle = clock.create_jump_callback(threshold, post_callback=clear)
    # The callback ends with the keeper. A strong reference here would keep the node alive.
    weak_clock, callback_id = weakref.ref(clock), handle._callback_id
    weakref.finalize(keeper, _end_jumps, weak_clock, callback_id).atexit = False
    return handle


def _end_jumps(weak_clock: weakref.ref[Any], callback_id: int) -> None:
    clock = weak_clock()
    if clock is not None:
        # A destroyed clock has none.
        with contextlib.suppress(InvalidHandle):
            clock.handle.remove_clock_callback(callback_id)


class Cache(SimpleFilter):
    """The last messages of a filter, by time."""

    def __init__(self, f: SimpleFilter, cache_size: int = 1, allow_headerless: bool = False) -> None:
        """
        Cache the output of a filter.

        :param f: The filter.
        :param cache_size: Messages to keep; the oldest is dropped first.
        :param allow_headerless: Keep messages without header under the time of arrival.
        """
        super().__init__()
        self.cache_size = cache_size
        self.allow_headerless = allow_headerless
        self._cache = _native.MessageCache(cache_size)
        self.connectInput(f)

    def connectInput(self, f: SimpleFilter) -> None:
        """Cache the output of a filter."""
        self.node = getattr(f, 'node', None)
        self._jumps = _clear_after_jumps(f, self._cache)
        self.incoming_connection = f.registerCallback(self.add)

    @property
    def cache_msgs(self) -> List[Any]:
        """The messages, the oldest first."""
        return [msg for _, (_, msg) in self._cache.messages()]

    @property
    def cache_times(self) -> List[Time]:
        """Their times."""
        return [stamp for _, (stamp, _) in self._cache.messages()]

    def add(self, msg: Any) -> None:
        """Add a message and pass it on."""
        stamp = _stamp(msg, self.allow_headerless, 'message_filters_cache')
        if stamp is not None:
            # Users get the stamp back as it was given: times of other clocks do not compare.
            self._cache.add(stamp.nanoseconds, (stamp, msg))
            self.signalMessage(msg)

    def getInterval(self, from_stamp: Time, to_stamp: Time) -> List[Any]:
        """
        Return the messages of a time span, with both ends.

        :raises AssertionError: if the span ends before it begins.
        """
        if from_stamp > to_stamp:
            raise AssertionError(f'the interval ends at {to_stamp}, before {from_stamp}')
        span = self._cache.interval(from_stamp.nanoseconds, to_stamp.nanoseconds)
        return [msg for _, msg in span]

    def getElemAfterTime(self, stamp: Time) -> Any:
        """Return the first message at a time or later, or ``None``."""
        found = self._cache.after(stamp.nanoseconds)
        return found[1] if found else None

    def getElemBeforeTime(self, stamp: Time) -> Any:
        """Return the last message at a time or earlier, or ``None``."""
        found = self._cache.before(stamp.nanoseconds)
        return found[1] if found else None

    def getLastestTime(self) -> Optional[Time]:
        """Return the latest time of a message, or ``None``."""
        last = self._cache.last()
        return last[1][0] if last else None

    def getOldestTime(self) -> Optional[Time]:
        """Return the time of the oldest message, or ``None``."""
        first = self._cache.first()
        return first[1][0] if first else None

    def getLast(self) -> Any:
        """Return the message of the latest time, or ``None``."""
        last = self._cache.last()
        return last[1][1] if last else None


class TimeSynchronizer(SimpleFilter):
    """
    Sets of messages of several filters that have the same time stamp.

    Waiting messages that are older than a set are dropped: time never goes back in the output,
    unless messages of all filters come again.
    """

    def __init__(self, fs: Sequence[SimpleFilter], queue_size: int) -> None:
        """
        Synchronize filters.

        :param fs: The filters. A callback gets one message of each, in their order.
        :param queue_size: Messages of each filter that wait for the others.
        """
        super().__init__()
        self.queue_size = queue_size
        # Held during callbacks: sets keep their order, and a callback may spin.
        self.lock = threading.RLock()
        self.connectInput(fs)

    def _make(self, inputs: int) -> _native.Synchronizer:
        return _native.Synchronizer('exact', inputs, self.queue_size)

    def _stamp(self, msg: Any) -> Optional[Time]:
        return Time.from_msg(msg.header.stamp)

    def connectInput(self, fs: Sequence[SimpleFilter]) -> None:
        """Synchronize filters."""
        self._synchronizer = self._make(len(fs))
        self._jumps = [_clear_after_jumps(f, self._synchronizer) for f in fs]
        self.input_connections = [
            f.registerCallback(self.add, None, index) for index, f in enumerate(fs)]

    def add(self, msg: Any, my_queue: Any, my_queue_index: int) -> None:
        """
        Add a message of a filter, and pass the sets on that it completes.

        :param my_queue: Not used; queues belong to the implementation.
        :param my_queue_index: The number of the filter.
        """
        stamp = self._stamp(msg)
        if stamp is None:
            return
        with self.lock:
            for messages in self._synchronizer.add(my_queue_index, stamp.nanoseconds, msg):
                self.signalMessage(*messages)


class ApproximateTimeSynchronizer(TimeSynchronizer):
    """
    Sets of messages of several filters whose time stamps are close.

    A message passes the closest set on that it completes.
    """

    def __init__(
        self, fs: Sequence[SimpleFilter], queue_size: int, slop: float,
        allow_headerless: bool = False,
    ) -> None:
        """
        Synchronize filters.

        :param fs: The filters. A callback gets one message of each, in their order.
        :param queue_size: Messages of each filter that wait for the others.
        :param slop: Time in seconds; the messages of a set are closer together.
        :param allow_headerless: Use messages without header under the time of arrival.
        """
        self.slop = Duration(seconds=slop)
        self.allow_headerless = allow_headerless
        super().__init__(fs, queue_size)

    def _make(self, inputs: int) -> _native.Synchronizer:
        return _native.Synchronizer('slop', inputs, self.queue_size, self.slop.nanoseconds)

    def _stamp(self, msg: Any) -> Optional[Time]:
        return _stamp(msg, self.allow_headerless, 'message_filters_approx')
