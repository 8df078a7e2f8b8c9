"""Transforms of point clouds. Importing it registers them with tf2_ros; needs numpy."""

from tf2_sensor_msgs.tf2_sensor_msgs import (
    do_transform_cloud, from_msg_msg, to_msg_msg, transform_points,
)

__all__ = ['do_transform_cloud', 'from_msg_msg', 'to_msg_msg', 'transform_points']
