"""Transforms of point clouds."""

import math

import pytest

numpy = pytest.importorskip('numpy')

import tf2_ros  # noqa: E402
from geometry_msgs.msg import TransformStamped  # noqa: E402
from sensor_msgs.msg import PointCloud2, PointField  # noqa: E402
from sensor_msgs_py.point_cloud2 import (  # noqa: E402
    create_cloud, create_cloud_xyz32, read_points, read_points_numpy,
)
from std_msgs.msg import Header  # noqa: E402
from tf2_sensor_msgs import do_transform_cloud, transform_points  # noqa: E402

POINTS = numpy.array([[1, 2, 0], [10, 20, 30]], dtype=numpy.float32)


@pytest.fixture
def quarter_turn():
    """A quarter turn to the left, and 100 m up."""
    transform = TransformStamped(header=Header(frame_id='map'))
    transform.transform.translation.z = 100.0
    # Its length is 2: a rotation need not be normalized.
    transform.transform.rotation.z = 2.0 * math.sin(math.pi / 4)
    transform.transform.rotation.w = 2.0 * math.cos(math.pi / 4)
    return transform


MOVED = numpy.array([[-2, 1, 100], [-20, 10, 130]])


def test_a_cloud_is_moved_and_its_message_stays(quarter_turn):
    cloud = create_cloud_xyz32(Header(frame_id='lidar'), POINTS)
    result = do_transform_cloud(cloud, quarter_turn)
    assert numpy.allclose(read_points_numpy(result), MOVED, atol=1e-5)
    assert result.header.frame_id == 'map' and cloud.header.frame_id == 'lidar'
    assert numpy.array_equal(read_points_numpy(cloud), POINTS)
    assert numpy.allclose(transform_points(POINTS, quarter_turn.transform), MOVED)


def test_other_fields_padding_and_rows_stay(quarter_turn):
    fields = [
        PointField(name=name, offset=offset, datatype=kind, count=1)
        for name, offset, kind in (
            ('x', 0, PointField.FLOAT32), ('y', 4, PointField.FLOAT32),
            ('z', 8, PointField.FLOAT32), ('ring', 14, PointField.UINT16))]
    points = [(*point, ring) for ring, point in enumerate(POINTS)]
    cloud = create_cloud(Header(), fields, points, point_step=24)
    cloud.width, cloud.height, cloud.row_step, cloud.is_dense = 1, 2, 24, True
    result = do_transform_cloud(cloud, quarter_turn)
    moved = read_points(result)
    assert list(moved['ring']) == [0, 1]
    assert numpy.allclose([moved[axis] for axis in 'xyz'], MOVED.T, atol=1e-5)
    assert (result.width, result.height, result.point_step) == (1, 2, 24) and result.is_dense


def test_a_buffer_transforms_a_cloud(quarter_turn):
    buffer = tf2_ros.Buffer()
    quarter_turn.child_frame_id = 'lidar'
    quarter_turn.transform.rotation.z = quarter_turn.transform.rotation.w = math.sqrt(0.5)
    buffer.set_transform_static(quarter_turn, 'test')
    cloud = create_cloud_xyz32(Header(frame_id='lidar'), POINTS)
    assert numpy.allclose(
        read_points_numpy(buffer.transform(cloud, 'map')), MOVED, atol=1e-5)


def test_a_cloud_without_coordinates_is_refused(quarter_turn):
    with pytest.raises(AssertionError, match='it has no x, y, z'):
        do_transform_cloud(PointCloud2(), quarter_turn)
