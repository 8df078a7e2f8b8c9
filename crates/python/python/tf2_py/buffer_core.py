"""
The transform buffer: a tree of frames with the history of each transform.

The buffer of the Rust library keeps the transforms and looks them up. Look-ups interpolate
between two samples and never extrapolate.
"""

from __future__ import annotations

from pteros import _native
from rosidl_runtime_py import yaml_text
from tf2_py import exceptions, rigid
from tf2_py.exceptions import (
    ExtrapolationException, InvalidArgumentException, LookupException,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from geometry_msgs.msg import TransformStamped
    from rclpy.duration import Duration
    from rclpy.time import Time

DEFAULT_CACHE_NS = 10_000_000_000
"""History of each transform: 10 s, as in tf2."""

FRAMES_MAX = 10_000
"""Frames that one buffer knows. A transform that would name more is ignored, with a warning."""

_VELOCITY_START_NS = 10_000
"""The earliest time of a velocity, as in tf2."""


def _nanoseconds(time: Any) -> int:
    """Return a time of rclpy or of a message in nanoseconds."""
    try:
        return time.nanoseconds
    except AttributeError:
        return time.sec * 1_000_000_000 + time.nanosec


def _seconds(nanoseconds: int) -> str:
    return f'{nanoseconds // 1_000_000_000}.{nanoseconds // 1_000 % 1_000_000:06}'


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
        self._buffer = _native.TransformBuffer(
            DEFAULT_CACHE_NS if cache_time is None else cache_time.nanoseconds, FRAMES_MAX)

    # --- setting

    def clear(self) -> None:
        """Forget all transforms but the static ones."""
        self._buffer.clear()

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

    def _set(self, transform: Any, authority: str, is_static: bool) -> None:
        header = transform.header
        problem = self._buffer.set_transform(
            header.frame_id, transform.child_frame_id, _nanoseconds(header.stamp),
            *rigid.from_msg(transform.transform), authority, is_static)
        if problem is not None:
            _warn(f'transform from {authority!r} is ignored: {problem}')

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
        values, stamp_ns = self._lookup(target_frame, source_frame, _nanoseconds(time))
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
        self._refuse_slashes(target_frame, source_frame, fixed_frame)
        values, stamp_ns = _found(
            self._buffer.lookup_full, target_frame, _nanoseconds(target_time), source_frame,
            _nanoseconds(source_time), fixed_frame)
        return _stamped(target_frame, source_frame, values, stamp_ns)

    def can_transform_core(
        self, target_frame: str, source_frame: str, time: Time,
    ) -> Tuple[bool, str]:
        """Return whether a look-up would succeed, and else the reason."""
        try:
            self.lookup_transform_core(target_frame, source_frame, time)
        except exceptions.TransformException as error:
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
        except exceptions.TransformException as error:
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
        start, _ = self._lookup(observation, tracking, start_ns)
        end, _ = self._lookup(observation, tracking, end_ns)
        turned, _ = self._lookup(reference_frame, observation, stamp_ns)
        (origin, _), _ = self._lookup(reference_frame, tracking, stamp_ns)
        point_frame, _ = self._lookup(reference_frame, reference_point_frame, stamp_ns)
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
        function = 'get_latest_common_time'
        target = self._known(target_frame, '', function)
        source = self._known(source_frame, '', function)
        return Time(nanoseconds=self._latest_common_time(target, source))

    def _known(self, name: str, argument: str, function: str) -> str:
        place = function + (argument and f' argument {argument}')
        if not name:
            raise InvalidArgumentException(
                f'Invalid argument "" passed to {place} - in tf2 frame_ids cannot be empty')
        if name.startswith('/'):
            raise InvalidArgumentException(
                f'Invalid argument "{name}" passed to {place} - in tf2 frame_ids cannot start '
                "with a '/'")
        if not self._buffer.has_frame(name):
            raise LookupException(f'"{name}" passed to {place} does not exist. ')
        return name

    def _refuse_slashes(self, *frames: str) -> None:
        """Refuse a slash before a name, as tf2; the buffer passes over it."""
        if any(name[:1] == '/' for name in frames):
            for name, argument in zip(frames, ('target_frame', 'source_frame', 'fixed_frame')):
                self._known(name, argument, 'lookupTransform')

    def _lookup(self, target: str, source: str, stamp_ns: int) -> Tuple[rigid.Rigid, int]:
        """Return the transform and its time."""
        if target != source:
            self._refuse_slashes(target, source)
        return _found(self._buffer.lookup, target, source, stamp_ns)

    def _latest_common_time(self, target: str, source: str) -> int:
        return _found(self._buffer.latest_common_time, target, source)

    # --- the tree

    def _frameExists(self, frame_id: str) -> bool:
        return self._buffer.has_frame(frame_id)

    def _getFrameStrings(self) -> List[str]:
        return self._buffer.frame_names()

    def all_frames_as_string(self) -> str:
        """Return the frames and their parents as text."""
        return ''.join(
            f'Frame {name} exists with parent {parent}.\n'
            for name, parent, *_ in self._buffer.frames())

    def all_frames_as_yaml(self, time: Optional[Any] = None) -> str:
        """Return the frames with their parents and statistics as YAML."""
        lines = []
        for name, parent, is_static, first, last, count, authority in self._buffer.frames():
            span_s = max((last - first) / 1e9, 1e-4)
            rate = 10000.0 if is_static else count / span_s
            lines.append(
                f'{yaml_text.string(name)}: \n  parent: {_quoted(parent)}\n'
                f'  broadcaster: {_quoted(authority)}\n  rate: {rate:.3f}\n'
                f'  most_recent_transform: {last / 1e9:.6f}\n'
                f'  oldest_transform: {first / 1e9:.6f}\n'
                f'  buffer_length: {(last - first) / 1e9:.3f}\n')
        return ''.join(lines) or '[]'

    def _allFramesAsDot(self, time: Optional[Any] = None) -> str:
        edges = ''.join(
            f'"{parent}" -> "{name}"[label=" Broadcaster: {authority}"];\n'
            for name, parent, _, _, _, _, authority in self._buffer.frames())
        return 'digraph G {\n' + edges + '}\n'

    def _chain(
        self, target_frame: str, target_time: Any, source_frame: str, source_time: Any,
        fixed_frame: str,
    ) -> List[str]:
        parents = {row[0]: row[1] for row in self._buffer.frames()}
        of_source = _ancestors(source_frame, parents)
        of_target = _ancestors(target_frame, parents)
        common = next((name for name in of_source if name in of_target), None)
        if common is None:
            # Fails with the reason.
            self._latest_common_time(target_frame, source_frame)
            return []
        return (of_source[:of_source.index(common) + 1]
                + of_target[:of_target.index(common)][::-1])


def _found(look_up: Callable, *args: Any) -> Any:
    try:
        return look_up(*args)
    except _native.TransformMiss as miss:
        kind, text = miss.args
        raise getattr(exceptions, kind)(text) from None


def _ancestors(name: str, parents: Dict[str, str]) -> List[str]:
    """Return a frame and its ancestors."""
    found = {name: None}
    while name in parents and parents[name] not in found:
        name = parents[name]
        found[name] = None
    return list(found)


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
