"""Pteros: ROS 2 without an installation of ROS 2.

Programs import `rclpy` and message packages such as `std_msgs`. This package holds the
native module that they run on.
"""

from pteros._native import __version__

__all__ = ['__version__']
