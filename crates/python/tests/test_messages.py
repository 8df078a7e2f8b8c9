"""Message classes: constructor, defaults, comparison, copies, CDR in both directions."""

import array
import ast
import copy
import importlib
import pathlib
import pickle

import pytest
from pteros import _native

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point32, Polygon, PoseWithCovariance, Vector3
from rcl_interfaces.msg import Log
from rosidl_runtime_py import (
    get_action_interfaces, get_message_interfaces, get_service_interfaces, message_to_yaml,
    set_message_fields,
)
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from std_msgs.msg import Float64MultiArray, Header, String, UInt8MultiArray
from std_srvs.srv import SetBool
from example_interfaces.action import Fibonacci
from test_msgs.msg import (
    Arrays, BasicTypes, BoundedSequences, Constants, Defaults, Empty, Nested, Strings,
    UnboundedSequences, WStrings,
)

ALL = [f'{package}/{entry}' for package in _native.get_interface_packages()
       for entry in _native.get_interfaces(package) if entry.startswith('msg/')]


def round_trip(message):
    return _native.deserialize_message(_native.serialize_message(message), type(message))


@pytest.mark.parametrize('name', ALL)
def test_every_default_message_survives_serialization(name):
    cls = _native.get_message_class(name)
    message = cls()
    assert round_trip(message) == message
    assert repr(message).startswith(name.replace('/', '.') + '(')
    assert len(cls.SLOT_TYPES) == len(cls.get_fields_and_field_types())
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message


def stub_classes(path):
    """Return the classes of a stub with their annotated fields and constants."""
    tree = ast.parse(path.read_text())
    return {
        outer.name: {
            inner.name: inner for inner in outer.body if isinstance(inner, ast.ClassDef)
        } or {None: outer}
        for outer in tree.body if isinstance(outer, ast.ClassDef)}


@pytest.mark.parametrize('package', sorted(_native.get_interface_packages()))
def test_the_stubs_of_a_package_have_the_fields_and_constants_of_its_classes(package):
    folder = pathlib.Path(importlib.import_module(package).__file__).parent
    assert (folder / 'py.typed').exists()
    seen = 0
    for path in folder.glob('*/__init__.pyi'):
        module = importlib.import_module(f'{package}.{path.parent.name}')
        classes = stub_classes(path)
        assert sorted(classes) == module.__all__
        for name, parts in classes.items():
            for part, node in parts.items():
                cls = getattr(module, name) if part is None else getattr(getattr(module, name), part)
                lines = [line for line in node.body if isinstance(line, ast.AnnAssign)]
                constants = {line.target.id for line in lines
                             if ast.unparse(line.annotation).startswith('_ClassVar')}
                fields = [line.target.id for line in lines if line.target.id not in constants
                          and line.target.id not in ('Event', 'Impl')]
                assert fields == list(cls.get_fields_and_field_types())
                assert all(hasattr(cls, constant) for constant in constants)
                seen += len(constants)
    assert seen > 0 or package != 'sensor_msgs'


def test_fields_are_keywords_of_the_constructor():
    assert String(data='x').data == 'x'
    assert String().data == ''
    assert String(data='x') == String(data='x') != String(data='y')
    assert repr(String(data='x')) == "std_msgs.msg.String(data='x')"
    with pytest.raises(TypeError):
        hash(String())
    with pytest.raises(AttributeError):
        String().datum = 1


def test_a_class_lives_in_the_module_that_rosidl_gives_it():
    from std_msgs.msg._string import String as same
    assert same is String
    assert String.__module__ == 'std_msgs.msg._string'


def test_the_fields_types_have_the_texts_of_rosidl():
    assert Header.get_fields_and_field_types() == {
        'stamp': 'builtin_interfaces/Time', 'frame_id': 'string'}
    fields = BoundedSequences.get_fields_and_field_types()
    assert fields['bool_values'] == 'sequence<boolean, 3>'
    assert PoseWithCovariance.get_fields_and_field_types()['covariance'] == 'double[36]'
    assert Image.get_fields_and_field_types()['data'] == 'sequence<uint8>'


def test_constants_and_defaults_are_read_only():
    assert Constants.INT32_CONST == -30000
    assert Constants().INT32_CONST == -30000
    assert Log.DEBUG == 10
    assert Defaults.INT32_VALUE__DEFAULT == -30000
    assert Defaults().int32_value == -30000
    with pytest.raises(AttributeError):
        Constants.INT32_CONST = 1


def test_values_of_every_kind_survive():
    basic = BasicTypes(bool_value=True, byte_value=b'\xff', char_value=7, float32_value=1.5,
                       float64_value=-2.25, int8_value=-128, uint8_value=255,
                       int16_value=-32768, uint16_value=65535, int32_value=-2 ** 31,
                       uint32_value=2 ** 32 - 1, int64_value=-2 ** 63, uint64_value=2 ** 64 - 1)
    assert round_trip(basic) == basic
    strings = Strings(string_value='Größe ✓')
    assert round_trip(strings) == strings
    wide = WStrings(wstring_value='ハロー')
    assert round_trip(wide) == wide
    nested = Nested(basic_types_value=basic)
    assert round_trip(nested) == nested
    assert round_trip(Empty()) == Empty()
    sequences = UnboundedSequences(
        bool_values=[True, False], byte_values=[b'\x00', b'\x01'], float64_values=[1.0, 2.0],
        int64_values=[-1], uint64_values=[2 ** 64 - 1], string_values=['a', ''],
        basic_types_values=[basic, BasicTypes()])
    again = round_trip(sequences)
    assert again == sequences
    assert again.float64_values == array.array('d', [1.0, 2.0])
    arrays = Arrays(int16_values=[1, -2, 3], string_values=['a', 'b', 'c'])
    again = round_trip(arrays)
    assert again == arrays and list(again.int16_values) == [1, -2, 3]


def test_sequences_of_numbers_are_arrays_and_assignment_copies():
    data = array.array('B', b'abc')
    image = Image(data=data)
    assert image.data == data and image.data is not data
    for given in (b'abc', bytearray(b'abc'), memoryview(b'abc'), [97, 98, 99]):
        image.data = given
        assert isinstance(image.data, array.array) and image.data == data
    assert round_trip(image).data == data
    checked = Image(check_fields=True)
    checked.data = data
    assert checked.data is data


def test_the_byte_order_of_the_sender_does_not_matter():
    message = UInt8MultiArray(data=b'\x01\x02')
    message.layout.data_offset = 0x01020304
    big = (b'\x00\x00\x00\x00' + b'\x00\x00\x00\x00' + b'\x01\x02\x03\x04'
           + b'\x00\x00\x00\x02\x01\x02')
    assert _native.deserialize_message(big, UInt8MultiArray) == message


def test_checks_are_off_by_default_and_serialization_finds_wrong_values():
    message = String(data=5, unknown=1)
    with pytest.raises(TypeError, match='std_msgs/msg/String.data: expected str'):
        _native.serialize_message(message)
    with pytest.raises(AssertionError):
        String(data=5, check_fields=True)
    with pytest.raises(AssertionError, match='unknown'):
        String(unknown=1, check_fields=True)
    with pytest.raises(ValueError, match='out of the range of uint8'):
        _native.serialize_message(BasicTypes(uint8_value=256))
    with pytest.raises(ValueError, match='int32_values'):
        _native.serialize_message(BoundedSequences(int32_values=[1, 2, 3, 4]))
    with pytest.raises(TypeError, match='Header.stamp'):
        _native.serialize_message(Header(stamp=String()))


def test_a_payload_of_another_type_is_refused():
    with pytest.raises(_native.RCLError, match='std_msgs/msg/String'):
        _native.deserialize_message(b'\x00\x01\x00\x00\xff\xff\xff\xff', String)
    with pytest.raises(_native.RCLError):
        _native.deserialize_message(b'', String)


def test_a_large_sequence_is_one_copy_of_bytes():
    cloud = PointCloud2(data=bytes(10_000_000), width=10)
    payload = _native.serialize_message(cloud)
    assert len(payload) > 10_000_000
    assert len(_native.deserialize_message(payload, PointCloud2).data) == 10_000_000


def test_services_and_actions_have_their_parts():
    assert SetBool.Request(data=True).data is True
    assert SetBool.Response.__name__ == 'SetBool_Response'
    assert SetBool.Event().info.sequence_number == 0
    with pytest.raises(NotImplementedError):
        SetBool()
    assert Fibonacci.Goal(order=3).order == 3
    assert Fibonacci.Impl.SendGoalService.Request().goal == Fibonacci.Goal()
    assert Fibonacci.Impl.FeedbackMessage().feedback == Fibonacci.Feedback()
    assert _native.get_type_name(Fibonacci.Impl.GetResultService) == \
        'example_interfaces/action/Fibonacci_GetResult'
    assert _native.is_service_class(SetBool) and not _native.is_message_class(SetBool)
    assert _native.is_action_class(Fibonacci)
    assert _native.is_message_class(SetBool.Request)


@pytest.mark.parametrize('header', ['auto', {'stamp': 'now', 'frame_id': 'map'}])
def test_set_message_fields_gives_a_setter_of_the_time(header):
    message = PointCloud2()
    setters = set_message_fields(
        message, {'header': header}, expand_header_auto=True, expand_time_now=True)
    for set_time in setters:
        set_time(Time(sec=1, nanosec=2))
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1, 2)
    with pytest.raises(TypeError, match='is expected to be a dictionary but is a str'):
        set_message_fields(message, {'header': header})


def test_type_hashes_are_those_of_ros():
    assert _native.get_type_hash(String) == (
        'RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18')


def test_unknown_names_are_named():
    with pytest.raises(ImportError):
        from std_msgs.msg import Strong  # noqa: F401
    with pytest.raises(LookupError, match='Strong'):
        _native.get_message_class('std_msgs/msg/Strong')


def test_geometry_messages_are_importable_from_their_transforms():
    import tf2_geometry_msgs
    from tf2_geometry_msgs import PointStamped, TransformStamped
    import geometry_msgs.msg as messages
    assert PointStamped is messages.PointStamped
    assert TransformStamped is messages.TransformStamped
    assert tf2_geometry_msgs.tf2_geometry_msgs.Point is messages.Point


@pytest.mark.parametrize('kind, name', [
    ('message', 'std_msgs/msg/Nope'), ('service', 'std_srvs/srv/Nope'),
    ('action', 'example_interfaces/action/Nope')])
def test_a_name_that_a_package_lacks_is_an_attribute_error(kind, name):
    from rosidl_runtime_py import utilities
    with pytest.raises(AttributeError, match='Nope'):
        getattr(utilities, f'get_{kind}')(name)
    with pytest.raises(ModuleNotFoundError, match='no_package'):
        getattr(utilities, f'get_{kind}')('no_package/' + name.split('/', 1)[1])


def _with_scalars(numpy):
    """Pairs of equal messages, one of them with values of numpy, and one that differs."""
    from geometry_msgs.msg import Point, Polygon, Point32, PointStamped
    from std_msgs.msg import Bool, Float32MultiArray, Int64
    return [
        (Point(x=numpy.float64(1.0)), Point(x=1.0), Point(x=2.0)),
        (Point(x=numpy.float32(0.5)), Point(x=0.5), Point(x=numpy.float32(0.25))),
        (Point(x=numpy.array([1.0])), Point(x=1.0), Point(x=3.0)),
        (Bool(data=numpy.bool_(True)), Bool(data=True), Bool(data=numpy.bool_(False))),
        (Int64(data=numpy.int32(-3)), Int64(data=-3), Int64(data=numpy.uint8(3))),
        (String(data=numpy.str_('a')), String(data='a'), String(data=numpy.str_('b'))),
        (PointStamped(point=Point(y=numpy.float64(1.0))), PointStamped(point=Point(y=1.0)),
         PointStamped()),
        (Polygon(points=[Point32(z=numpy.float32(2.0))]), Polygon(points=[Point32(z=2.0)]),
         Polygon(points=[Point32(z=numpy.float32(3.0))])),
        (PoseWithCovariance(covariance=numpy.ones(36)), PoseWithCovariance(covariance=[1.0] * 36),
         PoseWithCovariance(covariance=[1.0] * 35 + [2.0])),
        (Float32MultiArray(data=numpy.ones(3, dtype='float32')),
         Float32MultiArray(data=[1.0] * 3), Float32MultiArray(data=[1.0] * 4)),
        (Strings(string_value=numpy.str_('x')), Strings(string_value='x'), Strings()),
    ]


def test_fields_take_arrays_of_one_dimension():
    numpy = pytest.importorskip('numpy')
    for kind, dtype in ((Float64MultiArray, 'float64'), (UInt8MultiArray, 'uint8')):
        for shape in ((2, 3), (1, 3), (2, 2, 2), ()):
            with pytest.raises(TypeError):
                kind(data=numpy.ones(shape, dtype=dtype))
        message = kind()
        with pytest.raises(TypeError):
            message.data = numpy.ones((2, 3), dtype=dtype)
        assert len(message.data) == 0
        for data in (numpy.ones((2, 3), dtype=dtype).ravel(), numpy.ones(12, dtype=dtype)[::2]):
            message.data = data
            assert list(message.data) == [1] * 6
        message.data = numpy.ones((0, 3), dtype=dtype)
        assert len(message.data) == 0
    for value in (numpy.eye(3), numpy.ones((9, 1)), numpy.ones((1, 9)), [[1.0] * 3] * 3):
        with pytest.raises(ValueError, match='one dimension of 9'):
            CameraInfo(k=value)
    assert list(CameraInfo(k=numpy.eye(3).ravel()).k) == list(numpy.eye(3).ravel())


def test_messages_with_scalars_of_numpy_compare_as_others():
    numpy = pytest.importorskip('numpy')
    for scalar, plain, different in _with_scalars(numpy):
        assert (scalar == plain) is True and (plain == scalar) is True, plain
        assert (scalar != plain) is False and (plain != scalar) is False, plain
        assert (scalar == different) is False and (different != scalar) is True, plain
        assert scalar in [different, plain] and plain in [different, scalar]
        assert scalar not in [different] and [plain, scalar].index(scalar) == 0


def test_unchecked_values_that_do_not_compare_are_different():
    numpy = pytest.importorskip('numpy')
    long, short = String(), String()
    long.data, short.data = numpy.zeros(3), numpy.zeros(2)
    assert long != short and short != long and long != String()
    empty, one = String(), String()
    empty.data, one.data = numpy.zeros(0), numpy.zeros(1)
    assert empty != one
    assert long == copy.deepcopy(long)


def test_a_message_is_written_as_pyyaml_writes_it():
    assert message_to_yaml(Vector3(y=1.0)) == 'x: 0.0\ny: 1.0\nz: 0.0\n'
    values = PointCloud2(fields=[PointField(name='x', count=1)], data=b'ab')
    written = message_to_yaml(values, flow_style=True).splitlines()
    assert written[:2] == ['header:', '  stamp:']
    assert 'fields: [{name: x, offset: 0, datatype: 0, count: 1}]' in written
    assert 'data: [97, 98]' in written
    polygon = Polygon(points=[Point32(y=2.0)])
    assert message_to_yaml(polygon, flow_style=True) == 'points: [{x: 0.0, y: 2.0, z: 0.0}]\n'


@pytest.mark.parametrize('value, expected', [(b'x', "b'x'"), (bytearray(b'x'), "bytearray(b'x')")])
def test_bytes_become_a_text_in_a_text_field(value, expected):
    message = Header()
    set_message_fields(message, {'frame_id': value})
    assert message.frame_id == expected


def test_interfaces_are_listed_with_their_kind():
    assert get_service_interfaces(['std_srvs']) == {
        'std_srvs': ['srv/Empty', 'srv/SetBool', 'srv/Trigger']}
    assert get_action_interfaces(['example_interfaces']) == {
        'example_interfaces': ['action/Fibonacci']}
    assert 'msg/String' in get_message_interfaces(['std_msgs'])['std_msgs']
