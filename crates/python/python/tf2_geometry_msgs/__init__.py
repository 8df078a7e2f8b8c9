"""Transforms of geometry messages. Importing it registers them with tf2_ros."""

# Programs take the message classes from here, as from ROS 2's package.
from geometry_msgs.msg import (
    Point, Point32, PointStamped, PolygonStamped, Pose, PoseStamped, PoseWithCovarianceStamped,
    TransformStamped, Vector3Stamped,
)
from tf2_geometry_msgs.tf2_geometry_msgs import (
    do_transform_point, do_transform_polygon_stamped, do_transform_pose,
    do_transform_pose_stamped, do_transform_pose_with_covariance_stamped, do_transform_vector3,
    from_msg_msg, from_msg_vector, to_msg_msg, transform_covariance,
)

__all__ = [
    'Point', 'Point32', 'PointStamped', 'PolygonStamped', 'Pose', 'PoseStamped',
    'PoseWithCovarianceStamped', 'TransformStamped', 'Vector3Stamped', 'do_transform_point', 'do_transform_polygon_stamped', 'do_transform_pose',
    'do_transform_pose_stamped', 'do_transform_pose_with_covariance_stamped',
    'do_transform_vector3', 'from_msg_msg', 'from_msg_vector', 'to_msg_msg',
    'transform_covariance',
]
