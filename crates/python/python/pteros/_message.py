"""Classes of messages, services and actions, as rosidl_python makes them.

The native module calls `make_message_class` and its siblings when a type is first used.
A class has `__slots__`, a keyword constructor, a property per field, and constants and
defaults as read-only class attributes.
"""

from __future__ import annotations

import array
import collections
import collections.abc
import functools
import keyword
import math
import operator
import os
import re
import sys
import types

CHECK_FIELDS = os.environ.get('ROS_PYTHON_CHECK_FIELDS') == '1'
"""Whether setters check types by default."""

_CODES = {
    'int8': 'b', 'uint8': 'B', 'char': 'B', 'int16': 'h', 'uint16': 'H', 'int32': 'i',
    'uint32': 'I', 'int64': 'q', 'uint64': 'Q', 'float32': 'f', 'float64': 'd',
}
_RANGES = {
    'int8': (-(1 << 7), (1 << 7) - 1), 'uint8': (0, (1 << 8) - 1), 'char': (0, (1 << 8) - 1),
    'int16': (-(1 << 15), (1 << 15) - 1), 'uint16': (0, (1 << 16) - 1),
    'int32': (-(1 << 31), (1 << 31) - 1), 'uint32': (0, (1 << 32) - 1),
    'int64': (-(1 << 63), (1 << 63) - 1), 'uint64': (0, (1 << 64) - 1),
}
_DTYPES = {'char': 'uint8'}
_IDL_NAMES = {'bool': 'boolean', 'byte': 'octet', 'char': 'uint8', 'float32': 'float',
              'float64': 'double'}
_FLOAT32_MAX = 3.402823466e+38

_numpy = None
_numpy_is_known = False


def numpy():
    """Return numpy, or None where it is not installed. Imported at the first call."""
    global _numpy, _numpy_is_known
    if not _numpy_is_known:
        try:
            import numpy as module
            _numpy = module
        except ImportError:
            _numpy = None
        _numpy_is_known = True
    return _numpy


def to_array(code, value):
    """Return a new `array.array` with the elements of `value`."""
    if isinstance(value, array.array):
        if value.typecode == code:
            return value[:]
        return array.array(code, value)
    if isinstance(value, list):
        return array.array(code, value)
    try:
        view = memoryview(value)
    except TypeError:
        return array.array(code, value)
    made = array.array(code)
    letter = view.format[-1:]
    is_float = code in 'fd'
    same = (letter in 'fd') if is_float else (
        letter in 'bhilq' if code.islower() else letter in 'BHILQc')
    # An array of rows is no sequence of numbers.
    if same and view.itemsize == made.itemsize and view.c_contiguous and view.ndim == 1:
        made.frombytes(view.cast('B') if view.nbytes else b'')
        return made
    return array.array(code, value)


def to_fixed_array(dtype, code, count, value):
    """Return a new numpy array of `count` elements; an `array.array` without numpy."""
    module = numpy()
    if module is None:
        made = to_array(code, value)
    else:
        made = module.array(value, dtype=dtype)
        if made.ndim != 1:
            raise ValueError(
                f'an array of shape {made.shape}, but the field has one dimension of {count}; '
                'give it the result of ravel()')
    if len(made) != count:
        raise ValueError(f'{len(made)} elements, but the field has exactly {count}')
    return made


def default_fixed_array(dtype, code, count, value):
    """Return the initial value of such a field."""
    module = numpy()
    if module is None:
        return array.array(code, [0] * count if value is None else value)
    if value is None:
        return module.zeros(count, dtype=dtype)
    return module.array(value, dtype=dtype)


def same(one, other):
    """Compare two values of a field, also arrays and scalars of numpy."""
    try:
        result = one == other
    except ValueError:
        # Arrays of numpy whose shapes differ.
        return False
    if isinstance(result, bool):
        return result
    try:
        if len(one) != len(other):
            return False
    except TypeError:
        # One of them is a number.
        pass
    return bool(result.all() if hasattr(result, 'all') else result)


class _Field:
    """A field, as the native module describes it."""

    __slots__ = ('name', 'base', 'shape', 'count', 'bound', 'nested', 'default')

    def __init__(self, name, base, shape, count, bound, nested, default):
        self.name = name
        self.base = base
        self.shape = shape
        self.count = count
        self.bound = bound
        self.nested = nested
        self.default = default

    @property
    def code(self):
        return _CODES.get(self.base)

    @property
    def dtype(self):
        return _DTYPES.get(self.base, self.base)

    @property
    def is_sequence(self):
        return self.shape in ('bounded', 'unbounded')

    def element_text(self):
        if self.nested is not None:
            parts = self.nested._pteros_type_name.split('/')
            return f'{parts[0]}/{parts[2]}'
        text = _IDL_NAMES.get(self.base, self.base)
        return text if self.bound is None else f'{text}<{self.bound}>'

    def type_text(self):
        text = self.element_text()
        if self.shape == 'array':
            return f'{text}[{self.count}]'
        if self.shape == 'bounded':
            return f'sequence<{text}, {self.count}>'
        if self.shape == 'unbounded':
            return f'sequence<{text}>'
        return text

    def slot_type(self):
        from rosidl_parser import definition
        if self.nested is not None:
            package, kind, name = self.nested._pteros_type_name.split('/')
            element = definition.NamespacedType([package, kind], name)
        elif self.base == 'string':
            element = (definition.UnboundedString() if self.bound is None
                       else definition.BoundedString(self.bound))
        elif self.base == 'wstring':
            element = (definition.UnboundedWString() if self.bound is None
                       else definition.BoundedWString(self.bound))
        else:
            element = definition.BasicType(_IDL_NAMES.get(self.base, self.base))
        if self.shape == 'array':
            return definition.Array(element, self.count)
        if self.shape == 'bounded':
            return definition.BoundedSequence(element, self.count)
        if self.shape == 'unbounded':
            return definition.UnboundedSequence(element)
        return element

    def single_default(self):
        if self.default is not None and self.shape == 'single':
            return self.default
        if self.base == 'bool':
            return False
        if self.base == 'byte':
            return b'\x00'
        if self.base in ('float32', 'float64'):
            return 0.0
        if self.base in ('string', 'wstring'):
            return ''
        return 0

    def default_value(self):
        """A new default, or the value itself where it is immutable."""
        if self.shape == 'single':
            return self.nested() if self.nested is not None else self.single_default()
        if self.code is not None:
            if self.shape == 'array':
                return default_fixed_array(self.dtype, self.code, self.count, self.default)
            return array.array(self.code, self.default or [])
        if self.default is not None:
            return list(self.default)
        if self.shape == 'array':
            return [self.nested() if self.nested is not None else self.single_default()
                    for _ in range(self.count)]
        return []

    def element_fault(self, value):
        """Say what is wrong with an element, or return None."""
        if self.nested is not None:
            return None if isinstance(value, self.nested) else (
                f"a sub message of type '{self.nested.__name__}'")
        if self.base == 'bool':
            return None if isinstance(value, bool) else "of type 'bool'"
        if self.base == 'byte':
            ok = isinstance(value, (bytes, bytearray)) and len(value) == 1
            return None if ok else "of type 'bytes' or 'ByteString' with length 1"
        if self.base in ('string', 'wstring'):
            if not isinstance(value, (str, collections.UserString)):
                return "of type 'str'"
            if self.bound is not None and len(value) > self.bound:
                return f'a string not longer than {self.bound}'
            return None
        if self.base in ('float32', 'float64'):
            if not isinstance(value, float):
                return "of type 'float'"
            if (self.base == 'float32' and math.isfinite(value)
                    and not -_FLOAT32_MAX <= value <= _FLOAT32_MAX):
                return f'a float in [-{_FLOAT32_MAX}, {_FLOAT32_MAX}]'
            return None
        least, most = _RANGES[self.base]
        if not isinstance(value, int):
            return "of type 'int'"
        return None if least <= value <= most else f'an integer in [{least}, {most}]'

    def check(self, value):
        """Raise AssertionError unless `value` fits. For `check_fields`."""
        if self.shape == 'single':
            fault = self.element_fault(value)
            if fault is not None:
                raise AssertionError(
                    f"The '{self.name}' field must be {fault}, got {value!r}")
            return
        length = None
        if self.code is not None and self.shape != 'array' and isinstance(value, array.array):
            if value.typecode != self.code:
                raise AssertionError(
                    f"The '{self.name}' array.array() must have the type code of "
                    f"'{self.code}', got '{value.typecode}'")
        elif self.code is not None and self.shape == 'array' and hasattr(value, 'dtype'):
            if value.dtype != self.dtype:
                raise AssertionError(
                    f"The '{self.name}' numpy.ndarray() must have the dtype of "
                    f"'numpy.{self.dtype}', got '{value.dtype}'")
            length = value.size
        elif (isinstance(value, (str, collections.UserString)) or not isinstance(
                value, (collections.abc.Sequence, collections.abc.Set, collections.UserList,
                        array.array))):
            raise AssertionError(
                f"The '{self.name}' field must be a set or sequence, got {value!r}")
        else:
            for element in value:
                fault = self.element_fault(element)
                if fault is not None:
                    raise AssertionError(
                        f"The '{self.name}' field must be a set or sequence and each value "
                        f'{fault}, got {element!r}')
        if length is None:
            length = len(value)
        if self.shape == 'array' and length != self.count:
            raise AssertionError(
                f"The '{self.name}' field must have exactly {self.count} elements, "
                f'got {length}')
        if self.shape == 'bounded' and length > self.count:
            raise AssertionError(
                f"The '{self.name}' field must have at most {self.count} elements, "
                f'got {length}')


class _SlotTypes:
    """Class attribute `SLOT_TYPES`, computed at its first use."""

    def __init__(self, fields):
        self._fields = fields
        self._types = None

    def __get__(self, instance, owner):
        if self._types is None:
            self._types = tuple(field.slot_type() for field in self._fields)
        return self._types


# The setters of fields: their code is compiled once, and each field gets its own name in it.

def _set_single(self, value, check, convert):
    if self._check_fields:
        check(value)
    self._FIELD = value


def _set_fixed_array(self, value, check, convert):
    if self._check_fields:
        check(value)
    self._FIELD = convert(value)


def _set_sequence(self, value, check, convert):
    if self._check_fields:
        check(value)
        self._FIELD = value if isinstance(value, array.array) else convert(value)
    else:
        self._FIELD = convert(value)


def _property(field):
    """Return the property of a field."""
    slot = f'_{field.name}'
    template, convert = _set_single, None
    if field.shape != 'single' and field.code is not None:
        if field.shape == 'array':
            template = _set_fixed_array
            convert = functools.partial(to_fixed_array, field.dtype, field.code, field.count)
        else:
            template = _set_sequence
            convert = functools.partial(to_array, field.code)
    code = template.__code__
    code = code.replace(co_names=tuple(
        slot if name == '_FIELD' else name for name in code.co_names))
    setter = types.FunctionType(code, globals(), 'set', (field.check, convert))
    return property(
        operator.attrgetter(slot), setter, doc=f"Message field '{field.name}'.")


def _init_source(fields):
    lines = ['def __init__(self, *, check_fields=None, **values):',
             '    self._check_fields = CHECK_FIELDS if check_fields is None else check_fields',
             '    if self._check_fields:',
             '        unknown = [name for name in values if name not in F]',
             '        if unknown:',
             "            raise AssertionError('Invalid arguments passed to constructor: '",
             "                                 + ', '.join(sorted(unknown)))"]
    for field in fields:
        name = field.name
        if field.shape == 'single' and field.nested is None:
            default = repr(field.single_default())
        else:
            default = f'D[{name!r}]()'
        lines.append(f'    if {name!r} in values:')
        value = f'values[{name!r}]'
        if field.code is not None and field.shape not in ('single', 'array'):
            # As in rosidl_python, before the check.
            value = f'to_array({field.code!r}, {value})'
        lines.append(f'        self.{name} = {value}')
        lines.append('    else:')
        lines.append(f'        self._{name} = {default}')
    return '\n'.join(lines) + '\n'


def _lazy_init(fields, space, owner):
    """Return an `__init__` that compiles the real one when a program makes a message."""
    def __init__(self, **values):
        # Not of the source itself: if Ctrl-C interrupts that, CPython kills the process with SIGINT
        # at its end, although the program has caught KeyboardInterrupt.
        exec(compile(_init_source(fields), '<message>', 'exec'), space)
        owner[0].__init__ = space['__init__']
        space['__init__'](self, **values)

    return __init__


def _repr(self):
    parts = type(self).__module__.split('.')[:-1] + [type(self).__name__]
    fields = []
    for name in self._fields_and_field_types:
        value = getattr(self, name)
        text = repr(value.tolist()) if isinstance(value, array.array) else repr(value)
        fields.append(f'{name}={text}')
    return f"{'.'.join(parts)}({', '.join(fields)})"


def _eq(self, other):
    if not isinstance(other, self.__class__):
        return False
    return all(same(getattr(self, name), getattr(other, name))
               for name in self._fields_and_field_types)


def _get_fields_and_field_types(cls):
    return dict(cls._fields_and_field_types)


def _import_type_support(cls):
    """Do nothing: the native module has the type already."""


def module_name(package, kind, name):
    """Return the module of a type: `std_msgs.msg._string`."""
    outer = name.split('_')[0]
    snake = re.sub(r'(.)([A-Z][a-z]+)', r'\1_\2', outer)
    snake = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', snake).lower()
    return f'{package}.{kind}._{snake}'


def _publish_in_module(cls, package, kind, name):
    """Put the class into its module, which pickle and some programs import."""
    full = module_name(package, kind, name)
    module = sys.modules.get(full)
    if module is None:
        module = types.ModuleType(full)
        module.__package__ = f'{package}.{kind}'
        sys.modules[full] = module
    setattr(module, name, cls)


def _metaclass(name, values):
    """Return a metaclass on which `values` are read-only."""
    body = {'_CREATE_ROS_MESSAGE': None, '_CONVERT_FROM_PY': None, '_CONVERT_TO_PY': None,
            '_DESTROY_ROS_MESSAGE': None, '_TYPE_SUPPORT': True,
            '__import_type_support__': classmethod(_import_type_support)}
    for constant, value in values.items():
        body[constant] = property(lambda cls, value=value: value)
    return type(f'Metaclass_{name}', (type,), body)


def make_message_class(type_name, package, kind, name, fields, constants):
    """Return the class of a message."""
    fields = [_Field(*field) for field in fields]
    for field in fields:
        if keyword.iskeyword(field.name):
            raise ValueError(
                f'{type_name}: the field {field.name!r} is a keyword of Python; rename it')
    table = {field.name: field for field in fields}
    values = dict(constants)
    for field in fields:
        if field.default is not None:
            values[f'{field.name.upper()}__DEFAULT'] = field.default_value()
    space = {
        'array': array, 'to_array': to_array, 'to_fixed_array': to_fixed_array, 'F': table,
        'D': {field.name: field.default_value for field in fields},
        'CHECK_FIELDS': CHECK_FIELDS,
    }
    owner = []
    body = dict(values)
    body.update({
        '__slots__': [f'_{field.name}' for field in fields] + ['_check_fields'],
        '__module__': module_name(package, kind, name),
        '__doc__': f"Message class '{name}'.",
        '__init__': _lazy_init(fields, space, owner),
        '__repr__': _repr,
        '__eq__': _eq,
        '__hash__': None,
        '_pteros_type_name': type_name,
        '_fields_and_field_types': {field.name: field.type_text() for field in fields},
        'SLOT_TYPES': _SlotTypes(fields),
        'get_fields_and_field_types': classmethod(_get_fields_and_field_types),
    })
    for field in fields:
        body[field.name] = _property(field)
    cls = _metaclass(name, values)(name, (), body)
    owner.append(cls)
    _publish_in_module(cls, package, kind, name)
    return cls


def _refuse(kind):
    def __init__(self):
        raise NotImplementedError(f'{kind} classes can not be instantiated')
    return __init__


def make_service_class(type_name, package, kind, name, parts):
    """Return the class of a service. `parts`: request, response, event."""
    request, response, event = parts
    body = {
        '__module__': module_name(package, kind, name),
        '__init__': _refuse('Service'),
        '_pteros_type_name': type_name,
        'Request': request, 'Response': response, 'Event': event,
    }
    cls = _metaclass(name, {})(name, (), body)
    _publish_in_module(cls, package, kind, name)
    return cls


def make_action_class(type_name, package, name, parts):
    """Return the class of an action."""
    goal, result, feedback, send_goal, get_result, feedback_message, cancel, status = parts
    module = module_name(package, 'action', name)
    implementation = type('Impl', (), {
        '__module__': module, 'SendGoalService': send_goal, 'GetResultService': get_result,
        'FeedbackMessage': feedback_message, 'CancelGoalService': cancel,
        'GoalStatusMessage': status,
    })
    body = {
        '__module__': module,
        '__init__': _refuse('Action'),
        '_pteros_type_name': type_name,
        'Goal': goal, 'Result': result, 'Feedback': feedback, 'Impl': implementation,
    }
    cls = _metaclass(name, {})(name, (), body)
    _publish_in_module(cls, package, 'action', name)
    return cls
