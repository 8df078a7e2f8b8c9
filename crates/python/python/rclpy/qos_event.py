"""The old name of :mod:`rclpy.event_handler`."""

import warnings

from rclpy.event_handler import *  # noqa: F401,F403
from rclpy.event_handler import QoSEventHandler  # noqa: F401

warnings.warn('importing qos_event is deprecated, import event_handler', DeprecationWarning)
