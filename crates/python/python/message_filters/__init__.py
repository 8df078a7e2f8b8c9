"""Filters of messages: caches, and synchronizers of several topics by time stamps."""

from __future__ import annotations

import itertools
import threading

import rclpy.logging
from rclpy.clock import ROSClock
from rclpy.time import Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

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
        self.cache_msgs: List[Any] = []
        self.cache_times: List[Time] = []
        self.allow_headerless = allow_headerless
        self.connectInput(f)

    def connectInput(self, f: SimpleFilter) -> None:
        """Cache the output of a filter."""
        self.incoming_connection = f.registerCallback(self.add)

    def add(self, msg: Any) -> None:
        """Add a message and pass it on."""
        stamp = _stamp(msg, self.allow_headerless, 'message_filters_cache')
        if stamp is None:
            return
        self.cache_times.append(stamp)
        self.cache_msgs.append(msg)
        if len(self.cache_msgs) > self.cache_size:
            del self.cache_msgs[0]
            del self.cache_times[0]
        self.signalMessage(msg)

    def getInterval(self, from_stamp: Time, to_stamp: Time) -> List[Any]:
        """
        Return the messages of a time span, with both ends.

        :raises AssertionError: if the span ends before it begins.
        """
        if from_stamp > to_stamp:
            raise AssertionError(f'the interval ends at {to_stamp}, before {from_stamp}')
        return [
            msg for msg, stamp in zip(self.cache_msgs, self.cache_times)
            if from_stamp <= stamp <= to_stamp]

    def getElemAfterTime(self, stamp: Time) -> Any:
        """Return the first message at a time or later, or ``None``."""
        for msg, time in zip(self.cache_msgs, self.cache_times):
            if time >= stamp:
                return msg
        return None

    def getElemBeforeTime(self, stamp: Time) -> Any:
        """Return the last message at a time or earlier, or ``None``."""
        found = None
        for msg, time in zip(self.cache_msgs, self.cache_times):
            if time <= stamp:
                found = msg
        return found

    def getLastestTime(self) -> Optional[Time]:
        """Return the time of the message that came last, or ``None``."""
        return self.cache_times[-1] if self.cache_times else None

    def getOldestTime(self) -> Optional[Time]:
        """Return the time of the oldest message, or ``None``."""
        return self.cache_times[0] if self.cache_times else None

    def getLast(self) -> Any:
        """Return the message of the latest time, or ``None``."""
        latest = self.getLastestTime()
        return None if latest is None else self.getElemAfterTime(latest)


class TimeSynchronizer(SimpleFilter):
    """Sets of messages of several filters that have the same time stamp."""

    def __init__(self, fs: Sequence[SimpleFilter], queue_size: int) -> None:
        """
        Synchronize filters.

        :param fs: The filters. A callback gets one message of each, in their order.
        :param queue_size: Messages of each filter that wait for the others.
        """
        super().__init__()
        self.queue_size = queue_size
        self.lock = threading.Lock()
        self.connectInput(fs)

    def connectInput(self, fs: Sequence[SimpleFilter]) -> None:
        """Synchronize filters."""
        self.queues: List[Dict[int, Any]] = [{} for _ in fs]
        self.input_connections = [
            f.registerCallback(self.add, queue, index)
            for index, (f, queue) in enumerate(zip(fs, self.queues))]

    def _push(self, queue: Dict[int, Any], stamp_ns: int, msg: Any) -> None:
        queue[stamp_ns] = msg
        while len(queue) > self.queue_size:
            del queue[min(queue)]

    def add(
        self, msg: Any, my_queue: Dict[int, Any], my_queue_index: Optional[int] = None,
    ) -> None:
        """
        Add a message of one filter, and pass the set on that it completes.

        Waiting messages that are older than the set are dropped: time never goes back in the
        output, unless messages of all filters come again.
        """
        stamp_ns = Time.from_msg(msg.header.stamp).nanoseconds
        with self.lock:
            self._push(my_queue, stamp_ns, msg)
            if not all(stamp_ns in queue for queue in self.queues):
                return
            messages = [queue[stamp_ns] for queue in self.queues]
            for queue in self.queues:
                for old in [each for each in queue if each <= stamp_ns]:
                    del queue[old]
        self.signalMessage(*messages)


class ApproximateTimeSynchronizer(TimeSynchronizer):
    """Sets of messages of several filters whose time stamps are close."""

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
        from rclpy.duration import Duration
        self.slop = Duration(seconds=slop)
        self.allow_headerless = allow_headerless
        super().__init__(fs, queue_size)

    def add(
        self, msg: Any, my_queue: Dict[int, Any], my_queue_index: Optional[int] = None,
    ) -> None:
        """Add a message of one filter, and pass the closest set on that it completes."""
        stamp = _stamp(msg, self.allow_headerless, 'message_filters_approx')
        if stamp is None:
            return
        now_ns = stamp.nanoseconds
        slop_ns = self.slop.nanoseconds
        messages = None
        with self.lock:
            self._push(my_queue, now_ns, msg)
            if now_ns not in my_queue:
                # The queue is full of later messages.
                return
            candidates = []
            for index, queue in enumerate(self.queues):
                near = [now_ns] if index == my_queue_index else sorted(
                    (each for each in queue if abs(each - now_ns) <= slop_ns),
                    key=lambda each: abs(each - now_ns))
                if not near:
                    return
                candidates.append(near)
            # The closest stamps come first in each list, and so in the product.
            for stamps in itertools.product(*candidates):
                if max(stamps) - min(stamps) < slop_ns:
                    messages = [
                        queue.pop(each) for queue, each in zip(self.queues, stamps)]
                    break
        if messages is not None:
            self.signalMessage(*messages)
