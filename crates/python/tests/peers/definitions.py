"""`rosidl_adapter.parser`: definitions as specifications."""

import contextlib
import os
import pathlib
import sys
import tempfile

from rosidl_adapter import convert_to_idl
from rosidl_adapter.parser import (
    BaseType, Type, is_valid_constant_name, is_valid_field_name, is_valid_message_name,
    is_valid_package_name, parse_action_string, parse_message_string, parse_primitive_value_string,
    parse_service_string, parse_value_string, validate_field_types,
)
from show import show

TEXTS = (
    'int32 x', 'int32', 'int32 X', 'int32 x 5', 'int32 x=5', 'int32 X=5', 'int32 X = 5 # c',
    'uint8 X=256', 'int8 X=-128', 'byte X=255', 'char X=-1', 'string S=a b', 'string S="a"',
    "string S='it\\'s'", 'string S="a\\"b"', 'string s "x # y"', 'string<=3 s "abcd"',
    'string<=3 s abc', 'string<=0 s', 'string<=a s', 'int32[] a [1, 2]', 'int32[2] a [1]',
    'int32[<=2] a [1,2,3]', 'int32[<=2] a [1]', 'int32[0] a', 'int32[x] a', 'int32] a',
    'string[] a ["x", "y,z"]', "string[] a ['x', \"y\"]", 'bool b true', 'bool b 2',
    'float32 f 1.5e3', 'float32 f x', 'Foo f', 'pkg/Foo f', 'pkg/foo f', 'Pkg/Foo f', 'a/b/Foo f',
    'int32 a_', 'int32 a__b', 'int32 _a', 'int32 a\nint32 a', 'int32 A=1\nint32 A=2',
    'int32 A__B=1', 'int32 A_=1', 'int32 A1=1', 'time t', 'wstring w "x"', 'int32 x 0x10',
    'int32 X=0b11', 'int32 X=1_0', 'int32 x 010', '# a\nint32 x', 'int32 x 1 2', 'Foo f 1',
    'bool[] b [true, 0]', 'string S=\\n', 'string s "a\\nb"', 'int32   x   7', "string s ''",
    'uint8[] d []', 'int64 X=9223372036854775807', 'uint64 X=18446744073709551616',
    '# top\n# more\n\nint32 x # of x\n      # goes on\n\n# above\n\n# above [m]\nfloat64 y # [rad]')


def told(message):
    fields = [(str(one), one.type.array_size, one.default_value, one.annotations)
              for one in message.fields]
    constants = [(str(one), one.value, one.annotations) for one in message.constants]
    return str(message), fields, constants, message.annotations


def converted(kind, text):
    """Return the IDL of a definition. What the conversion prints names a temporary folder."""
    file = pathlib.Path(kind, f'Foo.{kind}')
    sys.stdout.flush()
    standard_output = os.dup(1)
    with tempfile.TemporaryDirectory() as name, open(os.devnull, 'w') as nothing:
        package = pathlib.Path(name)
        (package / kind).mkdir()
        (package / file).write_text(text)
        os.dup2(nothing.fileno(), 1)
        try:
            return convert_to_idl(package, 'pkg', file, package / 'out').read_bytes()
        finally:
            sys.stdout.flush()
            os.dup2(standard_output, 1)
            os.close(standard_output)


with open(os.devnull, 'w') as nothing, contextlib.redirect_stderr(nothing):
    for text in TEXTS:
        show(repr(text), lambda: told(parse_message_string('pkg', 'Foo', text)))
        if text != 'time t':
            # That type has no IDL. ROS 2 ends the program.
            show('idl', converted, 'msg', text)
    for text in ('---', 'int8 a\n---\nint8 b', '', 'a', '---\n---', ' ---', '--- '):
        show(repr(text), lambda: str(parse_service_string('pkg', 'Foo', text)))
        show('idl', converted, 'srv', text)
    for text in ('---\n---', '---', 'int8 a\n---\nint8 b\n---\nint8 c'):
        show(repr(text), lambda: told(parse_action_string('pkg', 'Foo', text).goal))
        show('idl', converted, 'action', text)
    for name in ('a', 'A', 'a_', 'a__b', '1', '', 'aB', 'Ab', 'A_B', 'A_Request', 3, None):
        for is_valid in (is_valid_package_name, is_valid_message_name, is_valid_constant_name,
                         is_valid_field_name):
            show((is_valid.__name__, name), lambda: bool(is_valid(name)))
    known = parse_message_string('p', 'A', 'B b')
    show('unknown', validate_field_types, known, [])
    show('known', validate_field_types, known, [BaseType('p/B')])
    show('value', parse_value_string, Type('int8[]'), '[1,2]')
    show('value', parse_value_string, Type('int8[]'), '1,2')
    show('value', parse_primitive_value_string, Type('int8[]'), '1')
    print(Type('int8[]') == Type('int8[]'), Type('int8[]') == Type('int8[3]'))
