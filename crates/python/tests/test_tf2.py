"""The transform buffer: trees, interpolation and the reasons of failures."""

import math
from types import SimpleNamespace

import pytest
from rclpy.time import Time
from tf2_py import (
    BufferCore, ConnectivityException, ExtrapolationException, InvalidArgumentException,
    LookupException, rigid,
)
from tf2_py.buffer_core import _nanoseconds
from tf2_ros.buffer import Buffer

SECOND = 1_000_000_000


def transform(parent, child, stamp, x=0.0, yaw=0.0):
    return SimpleNamespace(
        header=SimpleNamespace(
            frame_id=parent, stamp=SimpleNamespace(nanoseconds=round(stamp * SECOND))),
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
    (x, y, z), _ = buffer._lookup('map', 'camera', SECOND * 3 // 2)[0]
    assert (x, y, z) == pytest.approx((0.5, 3.0, 0.0))


def test_a_look_up_is_the_inverse_of_its_opposite(buffer):
    there, _ = buffer._lookup('map', 'camera', SECOND * 3 // 2)
    back, _ = buffer._lookup('camera', 'map', SECOND * 3 // 2)
    translation, rotation = rigid.compose(there, back)
    assert translation == pytest.approx((0.0, 0.0, 0.0))
    assert rotation == pytest.approx((0.0, 0.0, 0.0, 1.0))


def test_time_zero_is_the_latest_common_time(buffer):
    assert buffer._lookup('map', 'camera', 0)[1] == 2 * SECOND
    assert buffer._lookup('base', 'camera', 0)[1] == 0


@pytest.mark.parametrize('target, source, stamp, failure, text', [
    ('map', 'nowhere', 0, LookupException, '"nowhere" passed to .* does not exist'),
    ('map', '', 0, InvalidArgumentException, 'cannot be empty'),
    ('map', '/base', 0, InvalidArgumentException, "cannot start with a '/'"),
    ('map', 'base', 9 * SECOND, ExtrapolationException, 'into the future.*latest data is at time 2'),
    ('map', 'base', 1, ExtrapolationException, 'into the past.*earliest data is at time 1'),
    ('map', 'island', 9 * SECOND, ExtrapolationException, 'into the future|only time 1'),
    ('map', 'island', 0, ConnectivityException, 'not part of the same tree'),
])
def test_failures_give_the_reason(buffer, target, source, stamp, failure, text):
    buffer.set_transform(transform('sea', 'island', 1), 'test')
    with pytest.raises(failure, match=text):
        buffer._lookup(target, source, stamp)


# The frames of a chain from its root, with the seconds up to which each is known.
PATHS = [
    # The link above the common ancestor ends first.
    ({'odom': ('map', 99.9), 'base': ('odom', 100.0)}, 'base', 'odom', 100.0),
    ({'odom': ('map', 99.9), 'base': ('odom', 100.0)}, 'odom', 'base', 100.0),
    ({'odom': ('map', 99.9), 'base': ('odom', 100.0)}, 'map', 'base', 99.9),
    # Two branches below a common ancestor, and two links above it.
    ({'earth': ('sky', 50.0), 'odom': ('earth', 60.0), 'left': ('odom', 100.0),
      'right': ('odom', 99.0)}, 'left', 'right', 99.0),
    ({'earth': ('sky', 50.0), 'odom': ('earth', None), 'left': ('odom', 100.0),
      'right': ('odom', None), 'tip': ('right', 98.0)}, 'left', 'tip', 98.0),
    # Static links alone, below one that ends early.
    ({'odom': ('map', 10.0), 'base': ('odom', None), 'camera': ('base', None)},
     'odom', 'camera', 0),
]


@pytest.mark.parametrize('links, target, source, expected', PATHS)
def test_only_the_path_below_the_common_ancestor_matters(links, target, source, expected):
    buffer = BufferCore()
    for child, (parent, end) in links.items():
        if end is None:
            buffer.set_transform_static(transform(parent, child, 0, 1.0), 'test')
            continue
        for stamp in (end - 5.0, end):
            buffer.set_transform(transform(parent, child, stamp, 1.0), 'test')
    for one, other in ((target, source), (source, target)):
        _, stamp_ns = buffer._lookup(one, other, 0)
        assert stamp_ns == round(expected * SECOND)
        if expected:
            buffer._lookup(one, other, stamp_ns)
            with pytest.raises(ExtrapolationException) as failure:
                buffer._lookup(one, other, stamp_ns + SECOND // 10)
            assert f'latest data is at time {expected:.6f}' in str(failure.value)


@pytest.mark.parametrize('target, source, fixed, failure, argument', [
    ('', 'camera', 'map', InvalidArgumentException, 'target_frame'),
    ('/map', 'camera', 'map', InvalidArgumentException, 'target_frame'),
    ('nope', 'camera', 'map', LookupException, 'target_frame'),
    ('map', '', 'nope', InvalidArgumentException, 'source_frame'),
    ('map', 'nope', '', LookupException, 'source_frame'),
    ('map', 'camera', 'nope', LookupException, 'fixed_frame'),
])
def test_a_wrong_frame_goes_before_a_time_without_data(
        buffer, target, source, fixed, failure, argument):
    never = SimpleNamespace(nanoseconds=9000 * SECOND)
    with pytest.raises(failure, match=f'lookupTransform argument {argument} '):
        buffer.lookup_transform_full_core(target, never, source, never, fixed)


@pytest.mark.parametrize('bad', [
    transform('a', 'a', 1), transform('', 'a', 1), transform('a', '', 1),
    transform('a', 'b', 1, math.nan), transform('a', 'b', 1, math.inf),
    transform('a', 'b', 1, -math.inf),
])
def test_malformed_transforms_are_refused(buffer, bad, monkeypatch):
    warnings = []
    monkeypatch.setattr('tf2_py.buffer_core._warn', warnings.append)
    names = buffer._getFrameStrings()
    # As in tf2_py, the result says nothing.
    assert buffer.set_transform(bad, 'test') is None
    assert len(warnings) == 1 and buffer._getFrameStrings() == names


def test_the_history_is_limited(monkeypatch):
    warnings = []
    monkeypatch.setattr('tf2_py.buffer_core._warn', warnings.append)
    buffer = BufferCore()
    for stamp in range(1, 31):
        buffer.set_transform(transform('a', 'b', stamp), 'test')
    buffer.set_transform(transform('a', 'b', 5), 'test')
    assert len(warnings) == 1 and 'older than the cache time' in warnings[0]
    buffer._lookup('a', 'b', 20 * SECOND)
    with pytest.raises(ExtrapolationException, match='earliest data is at time 20.000000'):
        buffer._lookup('a', 'b', 19 * SECOND)


def test_a_loop_is_refused(buffer):
    buffer.set_transform(transform('sea', 'island', 1), 'test')
    buffer.set_transform_static(transform('camera', 'map', 0), 'test')
    with pytest.raises(LookupException, match='contains a loop'):
        buffer._lookup('sea', 'map', 0)


def test_clear_keeps_static_transforms(buffer):
    buffer.clear()
    assert buffer._lookup('base', 'camera', 0)[0][0] == (1.0, 0.0, 0.0)
    with pytest.raises(ConnectivityException):
        buffer._lookup('map', 'base', 0)


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
    assert len(warnings) == 1 and '3 frames are known' in warnings[0]
    # Known frames still get transforms.
    buffer.set_transform(transform('map', 'base', 2), 'test')
    assert buffer._lookup('map', 'base', 2 * SECOND)[1] == 2 * SECOND
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


@pytest.mark.parametrize('yaw, expected', [
    (1.0, (math.sin(0.5), math.cos(0.5))),
    (3.0, (math.sin(1.5), math.cos(1.5))),
    (-3.0, (math.sin(1.5), -math.cos(1.5))),
    (2 * math.pi - 1.0, (-math.sin(0.5), math.cos(0.5))),
])
def test_a_rotation_has_the_sign_that_tf2_gives_it(yaw, expected):
    buffer = BufferCore()
    buffer.set_transform_static(transform('a', 'b', 0, 1.0, yaw), 'test')
    (_, (_, _, z, w)), _ = buffer._lookup('a', 'b', 0)
    assert (z, w) == pytest.approx(expected)


def test_a_future_of_a_transform_has_it_as_its_result():
    buffer = Buffer()
    futures = [
        buffer.wait_for_transform_async('map', 'base', Time(seconds=2)),
        buffer.wait_for_transform_full_async(
            'base', Time(seconds=2), 'base', Time(seconds=1), 'map')]
    assert not any(future.done() for future in futures)
    for stamp in (1, 3):
        buffer.set_transform(transform('map', 'base', stamp, float(stamp)), 'test')
    futures.append(buffer.wait_for_transform_async('map', 'base', Time(seconds=2)))
    found = [future.result() for future in futures]
    assert [each.transform.translation.x for each in found] == [2.0, -1.0, 2.0]
    assert [each.child_frame_id for each in found] == ['base'] * 3
