"""The transform buffer: trees, interpolation and the reasons of failures."""

import math
from types import SimpleNamespace

import pytest
from tf2_py import (
    BufferCore, ConnectivityException, ExtrapolationException, InvalidArgumentException,
    LookupException, rigid,
)
from tf2_py.buffer_core import _nanoseconds

SECOND = 1_000_000_000


def transform(parent, child, stamp, x=0.0, yaw=0.0):
    return SimpleNamespace(
        header=SimpleNamespace(
            frame_id=parent, stamp=SimpleNamespace(sec=stamp, nanosec=0)),
        child_frame_id=child,
        transform=SimpleNamespace(
            translation=SimpleNamespace(x=x, y=0.0, z=0.0),
            rotation=SimpleNamespace(
                x=0.0, y=0.0, z=math.sin(yaw / 2), w=math.cos(yaw / 2))))


@pytest.fixture
def buffer():
    buffer = BufferCore()
    buffer.set_transform(transform('map', 'odom', 1, 0.0, math.pi / 2), 'test')
    buffer.set_transform(transform('map', 'odom', 3, 2.0, math.pi / 2), 'test')
    buffer.set_transform(transform('odom', 'base', 1, 1.0), 'test')
    buffer.set_transform(transform('odom', 'base', 2, 3.0), 'test')
    buffer.set_transform_static(transform('base', 'camera', 0, 1.0), 'test')
    return buffer


def test_a_look_up_interpolates_along_the_chain(buffer):
    (x, y, z), _ = buffer._lookup('map', 'camera', SECOND * 3 // 2, 'test')[0]
    assert (x, y, z) == pytest.approx((0.5, 3.0, 0.0))


def test_a_look_up_is_the_inverse_of_its_opposite(buffer):
    there, _ = buffer._lookup('map', 'camera', SECOND * 3 // 2, 'test')
    back, _ = buffer._lookup('camera', 'map', SECOND * 3 // 2, 'test')
    translation, rotation = rigid.compose(there, back)
    assert translation == pytest.approx((0.0, 0.0, 0.0))
    assert rotation == pytest.approx((0.0, 0.0, 0.0, 1.0))


def test_time_zero_is_the_latest_common_time(buffer):
    assert buffer._lookup('map', 'camera', 0, 'test')[1] == 2 * SECOND
    assert buffer._lookup('base', 'camera', 0, 'test')[1] == 0


@pytest.mark.parametrize('target, source, stamp, failure, text', [
    ('map', 'nowhere', 0, LookupException, '"nowhere" passed to .* does not exist'),
    ('map', '', 0, InvalidArgumentException, 'cannot be empty'),
    ('map', '/base', 0, InvalidArgumentException, "cannot start with a '/'"),
    ('map', 'base', 9 * SECOND, ExtrapolationException, 'into the future.*latest data is at time 2'),
    ('map', 'base', 1, ExtrapolationException, 'into the past.*earliest data is at time 1'),
    ('map', 'island', 0, ConnectivityException, 'not part of the same tree'),
])
def test_failures_give_the_reason(buffer, target, source, stamp, failure, text):
    buffer.set_transform(transform('sea', 'island', 1), 'test')
    with pytest.raises(failure, match=text):
        buffer._lookup(target, source, stamp, 'lookupTransform')


@pytest.mark.parametrize('bad', [
    transform('a', 'a', 1), transform('', 'a', 1), transform('a', '', 1),
    transform('a', 'b', 1, math.nan), transform('a', 'b', 1, math.inf),
    transform('a', 'b', 1, -math.inf),
])
def test_malformed_transforms_are_refused(buffer, bad, monkeypatch):
    warnings = []
    monkeypatch.setattr('tf2_py.buffer_core._warn', warnings.append)
    names = set(buffer._names)
    # As in tf2_py, the result says nothing.
    assert buffer.set_transform(bad, 'test') is None
    assert len(warnings) == 1 and set(buffer._names) == names


def test_the_history_is_limited():
    buffer = BufferCore()
    for stamp in range(1, 31):
        buffer.set_transform(transform('a', 'b', stamp), 'test')
    buffer.set_transform(transform('a', 'b', 5), 'test')
    assert buffer._frames['b'].stamps[0] == 20 * SECOND


def test_a_loop_is_refused(buffer):
    buffer.set_transform(transform('sea', 'island', 1), 'test')
    buffer.set_transform_static(transform('camera', 'map', 0), 'test')
    with pytest.raises(LookupException, match='contains a loop'):
        buffer._lookup('sea', 'map', 0, 'test')


def test_clear_keeps_static_transforms(buffer):
    buffer.clear()
    assert buffer._lookup('base', 'camera', 0, 'test')[0][0] == (1.0, 0.0, 0.0)
    with pytest.raises(ConnectivityException):
        buffer._lookup('map', 'base', 0, 'test')


def test_interpolation_of_rotations_takes_the_shorter_way():
    half = math.radians(170) / 2
    a = ((0.0,) * 3, (0.0, 0.0, math.sin(half), math.cos(half)))
    b = ((0.0,) * 3, (0.0, 0.0, math.sin(-half), math.cos(-half)))
    _, (_, _, z, w) = rigid.interpolate(a, b, 0.5)
    assert abs(math.degrees(2 * math.atan2(z, w))) % 360 == pytest.approx(180)


def test_a_buffer_knows_a_limited_number_of_frames(monkeypatch):
    warnings = []
    monkeypatch.setattr('tf2_py.buffer_core._warn', warnings.append)
    monkeypatch.setattr('tf2_py.buffer_core.FRAMES_MAX', 3)
    buffer = BufferCore()
    buffer.set_transform(transform('map', 'odom', 1), 'test')
    buffer.set_transform(transform('odom', 'base', 1), 'test')
    assert warnings == []
    buffer.set_transform(transform('base', 'wheel', 1), 'hostile')
    assert 'wheel' not in buffer._getFrameStrings()
    assert len(warnings) == 1 and '3 is the most' in warnings[0]
    # Known frames still get transforms.
    buffer.set_transform(transform('map', 'base', 2), 'test')
    assert buffer._lookup('map', 'base', 2 * SECOND, 'test')[1] == 2 * SECOND
    assert len(warnings) == 1


def test_a_look_up_takes_times_of_rclpy_and_of_messages():
    assert _nanoseconds(SimpleNamespace(nanoseconds=5)) == 5
    assert _nanoseconds(SimpleNamespace(sec=2, nanosec=3)) == 2 * SECOND + 3


def test_a_velocity_is_that_of_a_turning_body():
    buffer = BufferCore()
    # The body moves along x at 2 m/s and turns about z at 0.5 rad/s.
    for stamp in range(1, 6):
        buffer.set_transform(transform('map', 'body', stamp, 2.0 * stamp, 0.5 * stamp), 'test')
    buffer.set_transform_static(transform('body', 'arm', 0, 1.0), 'test')
    time, second = SimpleNamespace(nanoseconds=3 * SECOND), SimpleNamespace(nanoseconds=SECOND)
    linear, angular = buffer.lookupVelocityCore('body', 'map', time, second)
    assert linear == pytest.approx((2.0, 0.0, 0.0))
    assert angular == pytest.approx((0.0, 0.0, 0.5))
    # The arm is 1 m ahead, in the direction 1.5 rad, so that it moves across.
    linear, _ = buffer.lookupVelocityFullCore(
        'body', 'map', 'map', (0.0, 0.0, 0.0), 'arm', time, second)
    assert linear == pytest.approx((2.0 - 0.5 * math.sin(1.5), 0.5 * math.cos(1.5), 0.0))
    # In the frame of the body its own motion points back by the angle.
    linear, _ = buffer.lookupVelocityFullCore(
        'body', 'map', 'body', (0.0, 0.0, 0.0), 'body', time, second)
    assert linear == pytest.approx((2.0 * math.cos(1.5), -2.0 * math.sin(1.5), 0.0))
    assert buffer.lookupVelocityCore('arm', 'body', time, second) == ((0.0,) * 3, (0.0,) * 3)
    with pytest.raises(ExtrapolationException, match='needs two times'):
        buffer.lookupVelocityCore('body', 'map', time, SimpleNamespace(nanoseconds=0))
