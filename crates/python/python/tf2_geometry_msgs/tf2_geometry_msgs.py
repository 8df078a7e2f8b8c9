"""Functions that apply a transform to a geometry message."""

from __future__ import annotations

from geometry_msgs.msg import (  # noqa: F401
    Point, Point32, PointStamped, PolygonStamped, Pose, PoseStamped, PoseWithCovarianceStamped,
    TransformStamped, Vector3Stamped,
)
from tf2_py import rigid
from tf2_ros.buffer_interface import ConvertRegistration, TransformRegistration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List


def to_msg_msg(msg: Any) -> Any:
    """Return a message as its own message."""
    return msg


def from_msg_msg(msg: Any) -> Any:
    """Return a message from its own message."""
    return msg


def from_msg_vector(msg: Any) -> Any:
    """Return the vector of a Vector3Stamped."""
    return msg.vector


def _apply(transform: rigid.Rigid, x: float, y: float, z: float) -> Any:
    (tx, ty, tz), rotation = transform
    rx, ry, rz = rigid.rotate(rotation, (x, y, z))
    return rx + tx, ry + ty, rz + tz


def do_transform_point(point: PointStamped, transform: TransformStamped) -> PointStamped:
    """Return a point in the target frame of a transform."""
    result = PointStamped()
    result.point.x, result.point.y, result.point.z = _apply(
        rigid.from_msg(transform.transform), point.point.x, point.point.y, point.point.z)
    result.header = transform.header
    return result


def do_transform_vector3(vector3: Vector3Stamped, transform: TransformStamped) -> Vector3Stamped:
    """Return a vector in the target frame of a transform; a translation does not change it."""
    result = Vector3Stamped()
    _, rotation = rigid.from_msg(transform.transform)
    result.vector.x, result.vector.y, result.vector.z = rigid.rotate(
        rotation, (vector3.vector.x, vector3.vector.y, vector3.vector.z))
    result.header = transform.header
    return result


def do_transform_pose(pose: Pose, transform: TransformStamped) -> Pose:
    """Return a pose in the target frame of a transform."""
    p, q = pose.position, pose.orientation
    position, orientation = rigid.compose(
        rigid.from_msg(transform.transform), ((p.x, p.y, p.z), (q.x, q.y, q.z, q.w)))
    result = Pose()
    result.position.x, result.position.y, result.position.z = position
    (result.orientation.x, result.orientation.y, result.orientation.z,
     result.orientation.w) = orientation
    return result


def do_transform_pose_stamped(pose: PoseStamped, transform: TransformStamped) -> PoseStamped:
    """Return a pose with header in the target frame of a transform."""
    result = PoseStamped()
    result.pose = do_transform_pose(pose.pose, transform)
    result.header = transform.header
    return result


def do_transform_polygon_stamped(
    polygon: PolygonStamped, transform: TransformStamped,
) -> PolygonStamped:
    """Return a polygon in the target frame of a transform."""
    values = rigid.from_msg(transform.transform)
    points = []
    for point in polygon.polygon.points:
        x, y, z = _apply(values, point.x, point.y, point.z)
        points.append(Point32(x=x, y=y, z=z))
    result = PolygonStamped()
    result.polygon.points = points
    result.header = transform.header
    return result


def transform_covariance(cov_in: Any, transform: Any) -> List[float]:
    """
    Return a covariance of a pose (6 x 6, by rows) under a transform.

    Both blocks are rotated: R C R^T for each block of 3 x 3.
    """
    rotation = rigid.from_msg(transform.transform)[1]
    columns = [rigid.rotate(rotation, axis) for axis in (
        (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    r = [[columns[j][i] for j in range(3)] for i in range(3)]
    result = [0.0] * 36
    for row in (0, 3):
        for column in (0, 3):
            for i in range(3):
                for j in range(3):
                    result[(row + i) * 6 + column + j] = sum(
                        r[i][k] * float(cov_in[(row + k) * 6 + column + m]) * r[j][m]
                        for k in range(3) for m in range(3))
    return result


def do_transform_pose_with_covariance_stamped(
    pose: PoseWithCovarianceStamped, transform: TransformStamped,
) -> PoseWithCovarianceStamped:
    """Return a pose with covariance in the target frame of a transform."""
    result = PoseWithCovarianceStamped()
    result.pose.pose = do_transform_pose(pose.pose.pose, transform)
    result.pose.covariance = transform_covariance(pose.pose.covariance, transform)
    result.header = transform.header
    return result


def _register() -> None:
    conversions = ConvertRegistration()
    transforms = TransformRegistration()
    for kind, function in (
            (PointStamped, do_transform_point), (Vector3Stamped, do_transform_vector3),
            (PoseStamped, do_transform_pose_stamped),
            (PolygonStamped, do_transform_polygon_stamped),
            (PoseWithCovarianceStamped, do_transform_pose_with_covariance_stamped)):
        conversions.add_to_msg(kind, to_msg_msg)
        conversions.add_from_msg(kind, from_msg_msg)
        transforms.add(kind, function)


_register()
