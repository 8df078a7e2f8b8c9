"""Message classes: what they accept, with and without checks, and their serialized form."""

import numpy
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, PoseWithCovariance
from rclpy.serialization import deserialize_message, serialize_message
from show import show
from std_msgs.msg import Bool, Byte, Float32, Header, Int8, String, UInt8MultiArray
from test_msgs.action import Fibonacci
from test_msgs.msg import (
    Arrays, BasicTypes, BoundedSequences, Constants, Defaults, Empty, Strings, WStrings,
)
from test_msgs.srv import BasicTypes as Service

for kind in (String, Header, Point, Pose, BasicTypes, Defaults, Arrays, BoundedSequences, Empty):
    print(kind.__name__, repr(kind()), kind.get_fields_and_field_types())
    print(len(kind.SLOT_TYPES), [type(each).__name__ for each in kind.SLOT_TYPES], kind.__slots__)

VALUES = (
    (String, 'data', [3, None, b'a', 'ok', numpy.str_('x')]),
    (Point, 'x', [1, 1.5, 'a', numpy.float64(2), numpy.float32(1.5), True]),
    (Int8, 'data', [1, 128, -129, 1.0, True, numpy.int8(3)]),
    (Bool, 'data', [True, 1, 'x', numpy.bool_(True)]),
    (Float32, 'data', [1e39, 1.0, float('inf'), float('nan')]),
    (Byte, 'data', [b'a', 'a', 3, bytearray(b'z'), b'ab']),
    (UInt8MultiArray, 'data', [
        [1, 2], (3,), b'abc', bytearray(b'ab'), numpy.array([1], dtype='uint8'), [256], 'abc',
        {1: 2}, None, {5}]),
    (PoseWithCovariance, 'covariance', [
        [0.0] * 36, numpy.zeros(36), numpy.zeros(36, dtype='float32'), [0] * 36]),
    (Header, 'stamp', [Time(sec=1), Duration(), 3]),
    (BoundedSequences, 'int32_values', [[1], [1, 2, 3, 4]]),
    (BoundedSequences, 'string_values', [['a'], [1], ['a'] * 4]),
    (Strings, 'bounded_string_value', ['x' * 22, 'x' * 23]),
    (Arrays, 'string_values', [['a', 'b', 'c'], ['a']]),
    (Arrays, 'basic_types_values', [[BasicTypes()] * 3, [1, 2, 3]]),
)


def assign(kind, name, value, check):
    message = kind(check_fields=check)
    setattr(message, name, value)
    return getattr(message, name)


for kind, name, values in VALUES:
    for value in values:
        for check in (False, True):
            show((kind.__name__, name, check), assign, kind, name, value, check)
            show((kind.__name__, check), lambda: kind(**{name: value}, check_fields=check))
for make in (lambda: String('x'), lambda: String(foo=1, check_fields=True), lambda: Service(),
             lambda: Fibonacci(), lambda: setattr(String(), 'foo', 1), lambda: hash(String()),
             lambda: setattr(Constants, 'BOOL_CONST', 3), lambda: Defaults.BOOL_VALUE__DEFAULT,
             lambda: (Constants.BOOL_CONST, Constants.FLOAT32_CONST, Constants.BYTE_CONST)):
    show('make', make)
print(String(data='a') == String(data='a'), String() == 3, String() != String(data='b'),
      String() == Header(), Time(sec=1) == Duration(sec=1))
for message in (String(data='hé'), BasicTypes(), Defaults(), Pose(), WStrings(wstring_value='ä'),
                BoundedSequences(int32_values=[1, 2])):
    payload = serialize_message(message)
    print(type(message).__name__, deserialize_message(payload, type(message)) == message)
