"""Pteros: ROS 2 without an installation of ROS 2.

Programs import `rclpy` and message packages such as `std_msgs`. This package holds the
native module that they run on.
"""

import _pteros_import_hook
from pteros._native import __version__

__all__ = ['__version__']

_pteros_import_hook.install()
