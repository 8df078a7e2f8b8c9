"""Transforms: buffers, listeners and broadcasters."""

from rclpy._imported_names import getter_of
from tf2_py import (
    BufferCore, ConnectivityException, ExtrapolationException, InvalidArgumentException,
    LookupException, TimeoutException, TransformException,
)
from tf2_ros.buffer import Buffer
from tf2_ros.buffer_client import BufferClient
from tf2_ros.buffer_interface import (
    BufferInterface, ConvertRegistration, NotImplementedException, Stamped, TransformRegistration,
    TypeException, convert,
)
from tf2_ros.static_transform_broadcaster import StaticTransformBroadcaster
from tf2_ros.transform_broadcaster import TransformBroadcaster
from tf2_ros.transform_listener import TransformListener

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = getter_of(__name__)

__all__ = [
    'Buffer', 'BufferClient', 'BufferCore', 'BufferInterface', 'ConnectivityException',
    'ConvertRegistration', 'ExtrapolationException', 'InvalidArgumentException',
    'LookupException', 'NotImplementedException', 'Stamped', 'StaticTransformBroadcaster',
    'TimeoutException', 'TransformBroadcaster', 'TransformException', 'TransformListener',
    'TransformRegistration', 'TypeException', 'convert',
]
