"""Functions that apply a transform to a point cloud."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import TransformStamped
from sensor_msgs.msg import PointCloud2
from sensor_msgs_py.numpy_compat import structured_to_unstructured
from sensor_msgs_py.point_cloud2 import create_cloud, read_points
from std_msgs.msg import Header
from tf2_ros.buffer_interface import ConvertRegistration, TransformRegistration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from geometry_msgs.msg import Quaternion, Transform

_AXES = ['x', 'y', 'z']


def to_msg_msg(msg: Any) -> Any:
    """Return a message as its own message."""
    return msg


def from_msg_msg(msg: Any) -> Any:
    """Return a message from its own message."""
    return msg


def _rotation_matrix(rotation: Quaternion) -> np.ndarray:
    """Return the matrix of a rotation, which need not have length 1; a zero turns nothing."""
    x, y, z, w = rotation.x, rotation.y, rotation.z, rotation.w
    square = x * x + y * y + z * z + w * w
    if square < np.finfo(np.float64).eps:
        return np.eye(3)
    # I + 2 w K + 2 K K, where K times a vector is the cross product with the axis.
    axis = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + (w * axis + axis @ axis) * (2.0 / square)


def transform_points(point_cloud: np.ndarray, transform: Transform) -> np.ndarray:
    """
    Return points in the target frame of a transform.

    :param point_cloud: An array with a row for each point, and columns x, y and z.
    """
    translation = transform.translation
    offset = np.array([translation.x, translation.y, translation.z])
    return point_cloud @ _rotation_matrix(transform.rotation).T + offset


def do_transform_cloud(
    cloud: PointCloud2, transform: Union[Transform, TransformStamped],
) -> PointCloud2:
    """
    Return a cloud in the target frame of a transform; fields but x, y and z stay as they are.

    :param transform: A stamped transform also gives the frame of the result.
    :raises AssertionError: if the cloud has no fields x, y and z.
    """
    header = Header(stamp=cloud.header.stamp, frame_id=cloud.header.frame_id)
    if isinstance(transform, TransformStamped):
        header.frame_id = transform.header.frame_id
        transform = transform.transform
    missing = set(_AXES) - {field.name for field in cloud.fields}
    if missing:
        raise AssertionError(
            'Point cloud needs the fields x, y, and z for the transformation; it has no '
            + ', '.join(sorted(missing)))
    # The message keeps its points.
    points = read_points(cloud).copy()
    moved = transform_points(structured_to_unstructured(points[_AXES]), transform)
    for column, name in enumerate(_AXES):
        points[name] = moved[:, column]
    if cloud.height > 1:
        points = points.reshape(cloud.width, cloud.height)
    result = create_cloud(header, cloud.fields, points, cloud.point_step)
    result.is_dense = cloud.is_dense
    return result


ConvertRegistration().add_to_msg(PointCloud2, to_msg_msg)
ConvertRegistration().add_from_msg(PointCloud2, from_msg_msg)
TransformRegistration().add(PointCloud2, do_transform_cloud)
