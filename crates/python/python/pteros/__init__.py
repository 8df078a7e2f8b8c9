"""Pteros: ROS 2 without an installation of ROS 2.

Programs import `rclpy` and message packages such as `std_msgs`. This package holds the
native module that they run on.
"""

import _pteros_import_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pteros._native import __version__

__all__ = ['__version__']


def __getattr__(name: str) -> str:
    # Launch files without ROS nodes never load the native module.
    if name == '__version__':
        from pteros import _native
        return _native.__version__
    raise AttributeError(f"module 'pteros' has no attribute '{name}'")


_pteros_import_hook.install()
