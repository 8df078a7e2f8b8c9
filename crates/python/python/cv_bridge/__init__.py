"""Images of ROS as arrays of numpy, and back: the interface of ROS 2's `cv_bridge`."""

from cv_bridge.core import CvBridge, CvBridgeError, cvtColor2, getCvType

__all__ = ['CvBridge', 'CvBridgeError', 'cvtColor2', 'getCvType']
