"""
The transform buffer: a tree of frames with the history of each transform.

Look-ups interpolate between two samples and never extrapolate.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right

from rosidl_runtime_py import yaml_text
from tf2_py import rigid
from tf2_py.exceptions import (
    ConnectivityException, ExtrapolationException, InvalidArgumentException, LookupException,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from geometry_msgs.msg import TransformStamped
    from rclpy.duration import Duration
    from rclpy.time import Time

DEFAULT_CACHE_NS = 10_000_000_000

#: Frames that one buffer knows. A transform that would name more is ignored, with a warning.
FRAMES_MAX = 10_000
"""History of each transform: 10 s, as in tf2."""

_MAX_DEPTH = 1000
"""Frames from a leaf to its root. More of them are a loop."""

_VELOCITY_START_NS = 10_000
"""The earliest time of a velocity, as in tf2."""

_NORM_TOLERANCE = 0.01
"""Deviation of a quaternion's norm from 1 that is accepted, as in tf2."""


def _nanoseconds(time: Any) -> int:
    """Return a time of rclpy or of a message in nanoseconds."""
    try:
        return time.nanoseconds
    except AttributeError:
        return time.sec * 1_000_000_000 + time.nanosec


class _Frame:
    """The history of the transform of a frame in its parent."""

    __slots__ = ('stamps', 'samples', 'is_static', 'authority')

    def __init__(self, is_static: bool) -> None:
        self.is_static = is_static
        self.stamps: List[int] = []
        # The parent and the transform at each stamp.
        self.samples: List[Tuple[str, rigid.Rigid]] = []
        self.authority = ''

    def insert(self, stamp: int, parent: str, transform: rigid.Rigid, cache_ns: int) -> bool:
        if self.is_static:
            self.stamps, self.samples = [0], [(parent, transform)]
            return True
        stamps = self.stamps
        if stamps and stamp < stamps[-1] - cache_ns:
            return False
        index = bisect_left(stamps, stamp)
        if index < len(stamps) and stamps[index] == stamp:
            self.samples[index] = (parent, transform)
            return True
        stamps.insert(index, stamp)
        self.samples.insert(index, (parent, transform))
        oldest = stamps[-1] - cache_ns
        if stamps[0] < oldest:
            first = bisect_left(stamps, oldest)
            del stamps[:first]
            del self.samples[:first]
        return True

    def latest(self) -> Tuple[int, str]:
        """Return the last stamp and the parent there."""
        return self.stamps[-1], self.samples[-1][0]

    def parent_at(self, stamp: int) -> Optional[str]:
        """Return the parent at a time (0: the latest), or ``None`` if there is no data."""
        if self.is_static or stamp == 0:
            return self.samples[-1][0] if self.samples else None
        if not self.stamps or not self.stamps[0] <= stamp <= self.stamps[-1]:
            return None
        return self.samples[bisect_right(self.stamps, stamp) - 1][0]

    def sample_at(self, stamp: int) -> Tuple[str, rigid.Rigid]:
        """Return the parent and transform at a time; ``ExtrapolationException`` without data."""
        if self.is_static or stamp == 0:
            return self.samples[-1]
        stamps = self.stamps
        if not stamps[0] <= stamp <= stamps[-1]:
            raise ExtrapolationException(self._out_of_range(stamp))
        right = bisect_left(stamps, stamp)
        if stamps[right] == stamp:
            return self.samples[right]
        left = right - 1
        parent, start = self.samples[left]
        end_parent, end = self.samples[right]
        if parent != end_parent:
            # A frame that changed its parent keeps the old one until then.
            return parent, start
        ratio = (stamp - stamps[left]) / (stamps[right] - stamps[left])
        return parent, rigid.interpolate(start, end, ratio)

    def _out_of_range(self, stamp: int) -> str:
        stamps = self.stamps
        requested = f'Requested time {_seconds(stamp)}'
        if len(stamps) == 1:
            return (f'Lookup would require extrapolation at time {_seconds(stamp)}, but only '
                    f'time {_seconds(stamps[0])} is in the buffer')
        if stamp > stamps[-1]:
            return ('Lookup would require extrapolation into the future.  '
                    f'{requested} but the latest data is at time {_seconds(stamps[-1])}')
        return ('Lookup would require extrapolation into the past.  '
                f'{requested} but the earliest data is at time {_seconds(stamps[0])}')


def _seconds(nanoseconds: int) -> str:
    return f'{nanoseconds // 1_000_000_000}.{nanoseconds % 1_000_000_000:09}'


def _quoted(text: str) -> str:
    """Return a text as YAML in single quotes, as tf2 writes it, if they can carry it."""
    if not text.isprintable():
        return yaml_text.string(text)
    return "'" + text.replace("'", "''") + "'"


class BufferCore:
    """Keeps transforms and looks them up. All methods are thread-safe."""

    def __init__(self, cache_time: Optional[Duration] = None) -> None:
        """
        Create an empty buffer.

        :param cache_time: The history of each transform; ``None`` stands for 10 s.
        """
        self._cache_ns = DEFAULT_CACHE_NS if cache_time is None else cache_time.nanoseconds
        self._frames: Dict[str, _Frame] = {}
        # Every frame that was named, also the roots.
        self._names: Dict[str, None] = {}
        self._buffer_lock = threading.RLock()

    # --- setting

    def clear(self) -> None:
        """Forget all transforms but the static ones."""
        with self._buffer_lock:
            for frame in self._frames.values():
                if not frame.is_static:
                    frame.stamps, frame.samples = [], []

    def set_transform(self, transform: TransformStamped, authority: str) -> None:
        """
        Add a transform. One that is malformed or older than the history gives a warning.

        :param authority: Its origin, for diagnostics.
        """
        self._set(transform, authority, False)

    def set_transform_static(self, transform: TransformStamped, authority: str) -> None:
        """
        Add a transform that holds for all times. A malformed one gives a warning.

        :param authority: Its origin, for diagnostics.
        """
        self._set(transform, authority, True)

    def _set(self, transform: Any, authority: str, is_static: bool) -> bool:
        parent = transform.header.frame_id.lstrip('/')
        child = transform.child_frame_id.lstrip('/')
        values = rigid.from_msg(transform.transform)
        problem = _problem(parent, child, values)
        if problem:
            _warn(f'transform from {authority!r} is ignored: {problem}')
            return False
        stamp_ns = _nanoseconds(transform.header.stamp)
        with self._buffer_lock:
            new = len({parent, child} - self._names.keys())
            if len(self._names) + new > FRAMES_MAX:
                _warn(f'transform of frame {child!r} from {authority!r} is ignored: the buffer '
                      f'holds {len(self._names)} frames, and {FRAMES_MAX} is the most')
                return False
            frame = self._frames.get(child)
            if frame is None or frame.is_static != is_static:
                frame = self._frames[child] = _Frame(is_static)
            self._names[child] = None
            self._names[parent] = None
            if frame.insert(stamp_ns, parent, values, self._cache_ns):
                frame.authority = authority
                return True
        _warn(f'transform of frame {child!r} from {authority!r} is ignored: its time '
              f'{_seconds(stamp_ns)} is older than the history')
        return False

    # --- looking up

    def lookup_transform_core(
        self, target_frame: str, source_frame: str, time: Time,
    ) -> TransformStamped:
        """
        Return the transform from a source frame to a target frame.

        :param time: The time, also as a message; 0 stands for the latest one that all
            transforms have.
        :raises LookupException: if a frame does not exist.
        :raises ConnectivityException: if the frames are in different trees.
        :raises ExtrapolationException: if there is no data at that time.
        :raises InvalidArgumentException: if a frame id is empty or has a leading slash.
        """
        with self._buffer_lock:
            values, stamp_ns = self._lookup(
                target_frame, source_frame, _nanoseconds(time), 'lookupTransform')
        return _stamped(target_frame, source_frame, values, stamp_ns)

    def lookup_transform_full_core(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str,
    ) -> TransformStamped:
        """
        Return the transform from a source frame at one time to a target frame at another one.

        :param fixed_frame: A frame that does not move between the times.
        :raises: as :meth:`lookup_transform_core`.
        """
        with self._buffer_lock:
            to_fixed, _ = self._lookup(
                fixed_frame, source_frame, _nanoseconds(source_time), 'lookupTransform')
            from_fixed, stamp_ns = self._lookup(
                target_frame, fixed_frame, _nanoseconds(target_time), 'lookupTransform')
        return _stamped(
            target_frame, source_frame, rigid.compose(from_fixed, to_fixed), stamp_ns)

    def can_transform_core(
        self, target_frame: str, source_frame: str, time: Time,
    ) -> Tuple[bool, str]:
        """Return whether a look-up would succeed, and else the reason."""
        try:
            self.lookup_transform_core(target_frame, source_frame, time)
        except _FAILURES as error:
            return False, str(error)
        return True, ''

    def can_transform_full_core(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str,
    ) -> Tuple[bool, str]:
        """Return whether a look-up would succeed, and else the reason."""
        try:
            self.lookup_transform_full_core(
                target_frame, target_time, source_frame, source_time, fixed_frame)
        except _FAILURES as error:
            return False, str(error)
        return True, ''

    def lookupVelocityCore(  # noqa: N802
        self, tracking_frame: str, observation_frame: str, time: Time,
        averaging_interval: Duration,
    ) -> Tuple[rigid.Vector, rigid.Vector]:
        """
        Return the linear and the angular velocity of a frame, seen from another one.

        :raises: as :meth:`lookup_transform_core`.
        """
        return self.lookupVelocityFullCore(
            tracking_frame, observation_frame, observation_frame, (0.0, 0.0, 0.0),
            tracking_frame, time, averaging_interval)

    def lookupVelocityFullCore(  # noqa: N802
        self, tracking_frame: str, observation_frame: str, reference_frame: str,
        reference_point: rigid.Vector, reference_point_frame: str, time: Time,
        averaging_interval: Duration,
    ) -> Tuple[rigid.Vector, rigid.Vector]:
        """
        Return the linear and the angular velocity of a frame, seen from another one.

        :param reference_frame: The frame that the velocities are given in.
        :param reference_point: The point of the tracked body whose velocity it is.
        :param averaging_interval: The velocity is the mean over this time, which ends no
            later than the latest data.
        :raises: as :meth:`lookup_transform_core`.
        """
        function = 'lookupVelocity'
        stamp_ns, interval_ns = _nanoseconds(time), averaging_interval.nanoseconds
        with self._buffer_lock:
            tracking = self._known(tracking_frame, 'tracking_frame', function)
            observation = self._known(observation_frame, 'observation_frame', function)
            # Static transforms hold for all times.
            latest_ns = self._latest_common_time(observation, tracking) or stamp_ns + interval_ns
            end_ns = min(stamp_ns + interval_ns // 2, latest_ns)
            # Time 0 would be the latest time.
            start_ns = max(end_ns - interval_ns, _VELOCITY_START_NS)
            if end_ns <= start_ns:
                raise ExtrapolationException(
                    f'The velocity of "{tracking}" in "{observation}" needs two times, and the '
                    f'mean would end at {_seconds(end_ns)}')
            start, _ = self._lookup(observation, tracking, start_ns, function)
            end, _ = self._lookup(observation, tracking, end_ns, function)
            turned, _ = self._lookup(reference_frame, observation, stamp_ns, function)
            (origin, _), _ = self._lookup(reference_frame, tracking, stamp_ns, function)
            point_frame, _ = self._lookup(
                reference_frame, reference_point_frame, stamp_ns, function)
        seconds = (end_ns - start_ns) / 1e9
        moved = tuple((b - a) / seconds for a, b in zip(start[0], end[0]))
        turn = rigid.multiply(end[1], rigid.inverse(start)[1])
        angular = rigid.rotate(
            turned[1], tuple(part / seconds for part in rigid.rotation_vector(turn)))
        point, _ = rigid.compose(point_frame, (reference_point, rigid.IDENTITY[1]))
        arm = tuple(a - b for a, b in zip(point, origin))
        linear = tuple(
            a + b for a, b in zip(rigid.rotate(turned[1], moved), rigid.cross(angular, arm)))
        return linear, angular

    def get_latest_common_time(self, target_frame: str, source_frame: str) -> Time:
        """
        Return the latest time at which a look-up succeeds; 0 if all transforms are static.

        :raises: as :meth:`lookup_transform_core`.
        """
        from rclpy.time import Time
        with self._buffer_lock:
            source = self._known(source_frame, 'source_frame', 'getLatestCommonTime')
            target = self._known(target_frame, 'target_frame', 'getLatestCommonTime')
            stamp_ns = self._latest_common_time(target, source)
        return Time(nanoseconds=stamp_ns)

    def _known(self, name: str, argument: str, function: str) -> str:
        if not name:
            raise InvalidArgumentException(
                f'Invalid argument passed to {function} argument {argument} in tf2 '
                'frame_ids cannot be empty')
        if name.startswith('/'):
            raise InvalidArgumentException(
                f'Invalid argument "{name}" passed to {function} argument {argument} in tf2 '
                "frame_ids cannot start with a '/'")
        if name not in self._names:
            raise LookupException(
                f'"{name}" passed to {function} argument {argument} does not exist. ')
        return name

    def _lookup(
        self, target: str, source: str, stamp_ns: int, function: str,
    ) -> Tuple[rigid.Rigid, int]:
        """Return the transform and its time."""
        target = self._known(target, 'target_frame', function)
        source = self._known(source, 'source_frame', function)
        if target == source:
            return rigid.IDENTITY, stamp_ns or self._latest_stamp(source)
        if stamp_ns == 0:
            stamp_ns = self._latest_common_time(target, source)
        # From the source up to the root, with the transform of the source in each frame.
        try:
            in_ancestors = {source: rigid.IDENTITY}
            name, values = source, rigid.IDENTITY
            while name != target:
                frame = self._frames.get(name)
                if frame is None or not frame.samples:
                    break
                name, step = frame.sample_at(stamp_ns)
                values = rigid.compose(step, values)
                self._check_depth(in_ancestors, name)
                in_ancestors[name] = values
            if name == target:
                return values, stamp_ns
            name, values = target, rigid.IDENTITY
            seen = {target: None}
            while name not in in_ancestors:
                frame = self._frames.get(name)
                if frame is None or not frame.samples:
                    raise ConnectivityException(_unconnected(target, source))
                name, step = frame.sample_at(stamp_ns)
                values = rigid.compose(step, values)
                self._check_depth(seen, name)
                seen[name] = None
            return rigid.compose(rigid.inverse(values), in_ancestors[name]), stamp_ns
        except ExtrapolationException as error:
            if not self._are_connected(target, source):
                raise ConnectivityException(_unconnected(target, source)) from None
            raise ExtrapolationException(
                f'{error}, when looking up transform from frame [{source}] to frame '
                f'[{target}]') from None

    @staticmethod
    def _check_depth(seen: Dict[str, Any], name: str) -> None:
        if name in seen or len(seen) > _MAX_DEPTH:
            raise LookupException(
                f'The tf tree is invalid because it contains a loop at frame {name!r}.')

    def _latest_stamp(self, name: str) -> int:
        frame = self._frames.get(name)
        return frame.stamps[-1] if frame is not None and frame.stamps else 0

    def _ancestors(self, name: str) -> Dict[str, Optional[int]]:
        """Return the frames from one to its root, each with the last stamp below it."""
        result: Dict[str, Optional[int]] = {name: None}
        while True:
            frame = self._frames.get(name)
            if frame is None or not frame.samples:
                return result
            stamp, parent = frame.latest()
            last = None if frame.is_static else stamp
            below = result[name]
            self._check_depth(result, parent)
            result[parent] = (
                last if below is None else below if last is None else min(below, last))
            name = parent

    def _are_connected(self, target: str, source: str) -> bool:
        ancestors = self._ancestors(source)
        return any(name in ancestors for name in self._ancestors(target))

    def _latest_common_time(self, target: str, source: str) -> int:
        of_source = self._ancestors(source)
        for name, target_stamp in self._ancestors(target).items():
            if name in of_source:
                stamps = [
                    stamp for stamp in (of_source[name], target_stamp) if stamp is not None]
                return min(stamps) if stamps else 0
        raise ConnectivityException(_unconnected(target, source))

    # --- the tree

    def _frameExists(self, frame_id: str) -> bool:
        return frame_id.lstrip('/') in self._names

    def _getFrameStrings(self) -> List[str]:
        with self._buffer_lock:
            return list(self._names)

    def all_frames_as_string(self) -> str:
        """Return the frames and their parents as text."""
        with self._buffer_lock:
            return ''.join(
                f'Frame {name} exists with parent {frame.latest()[1]}.\n'
                for name, frame in self._frames.items() if frame.samples)

    def all_frames_as_yaml(self, time: Optional[Any] = None) -> str:
        """Return the frames with their parents and statistics as YAML."""
        lines = []
        with self._buffer_lock:
            for name, frame in self._frames.items():
                if not frame.samples:
                    continue
                first, last = frame.stamps[0], frame.stamps[-1]
                span_s = max((last - first) / 1e9, 1e-4)
                rate = 10000.0 if frame.is_static else len(frame.stamps) / span_s
                parent = _quoted(frame.latest()[1])
                lines.append(
                    f'{yaml_text.string(name)}: \n  parent: {parent}\n'
                    f'  broadcaster: {_quoted(frame.authority)}\n  rate: {rate:.3f}\n'
                    f'  most_recent_transform: {last / 1e9:.6f}\n'
                    f'  oldest_transform: {first / 1e9:.6f}\n'
                    f'  buffer_length: {(last - first) / 1e9:.3f}\n')
        return ''.join(lines) or '[]'

    def _allFramesAsDot(self, time: Optional[Any] = None) -> str:
        with self._buffer_lock:
            edges = ''.join(
                f'"{frame.latest()[1]}" -> "{name}"[label=" Broadcaster: {frame.authority}"];\n'
                for name, frame in self._frames.items() if frame.samples)
        return 'digraph G {\n' + edges + '}\n'

    def _chain(
        self, target_frame: str, target_time: Any, source_frame: str, source_time: Any,
        fixed_frame: str,
    ) -> List[str]:
        with self._buffer_lock:
            of_source = list(self._ancestors(source_frame))
            of_target = list(self._ancestors(target_frame))
        common = next((name for name in of_source if name in of_target), None)
        if common is None:
            raise ConnectivityException(_unconnected(target_frame, source_frame))
        return (of_source[:of_source.index(common) + 1]
                + of_target[:of_target.index(common)][::-1])


_FAILURES = (
    ConnectivityException, ExtrapolationException, InvalidArgumentException, LookupException)


def _unconnected(target: str, source: str) -> str:
    return (f"Could not find a connection between '{target}' and '{source}' because they are not "
            'part of the same tree. Tf has two or more unconnected trees.')


def _problem(parent: str, child: str, values: rigid.Rigid) -> str:
    if not child:
        return 'its child frame id is empty'
    if not parent:
        return f'the frame id of child {child!r} is empty'
    if parent == child:
        return f'frame {child!r} is its own parent'
    (x, y, z), (qx, qy, qz, qw) = values
    # An infinite number times zero is no number, and neither is the sum. Faster than a loop.
    if x * 0.0 + y * 0.0 + z * 0.0 + qx * 0.0 + qy * 0.0 + qz * 0.0 + qw * 0.0 != 0.0:
        return f'frame {child!r} has a value that is no finite number'
    norm = math.sqrt(qx * qx + qy * qy + qz * qz + qw * qw)
    if abs(norm - 1.0) > _NORM_TOLERANCE:
        return f'the quaternion of frame {child!r} has the norm {norm:.4f} instead of 1'
    return ''


def _warn(text: str) -> None:
    import rclpy.logging
    rclpy.logging.get_logger('tf2').warning(text)


def _stamped(target: str, source: str, values: rigid.Rigid, stamp_ns: int) -> TransformStamped:
    from geometry_msgs.msg import TransformStamped
    result = TransformStamped()
    result.header.frame_id = target
    result.header.stamp.sec, result.header.stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
    result.child_frame_id = source
    rigid.to_msg(values, result.transform)
    return result
