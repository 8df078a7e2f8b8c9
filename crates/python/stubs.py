"""Type stubs of the interface packages, for type checkers and editors.

The classes are made when a program first asks for them, so nothing but a stub shows their
fields. A stub has the types of values that are read; constructors take them by keyword.
"""

import re

HEAD = '''\
"""Types of {module}; written by the build of the wheel."""

from typing import Any as _Any, ClassVar as _ClassVar

'''

_NUMBERS = {
    'char': 'int', 'float32': 'float', 'float64': 'float',
    **{f'{sign}int{bits}': 'int' for sign in ('', 'u') for bits in (8, 16, 32, 64)}}
_SCALARS = {**_NUMBERS, 'bool': 'bool', 'byte': 'bytes', 'string': 'str', 'wstring': 'str'}
_LINE = re.compile(
    r'(?P<base>[\w/]+)(?:<=\d+)?(?P<array>\[(?:<=)?\d*\])?\s+(?P<name>\w+)\s*(?P<equals>=?)')
_SERVICE = ('Request', 'Response')
_ACTION = ('Goal', 'Result', 'Feedback')


def _type_of(base, array, package):
    """Return the annotation of a field, and the module that it needs."""
    if base in _NUMBERS and array:
        # Read as an array.array or an array of numpy, and set to any sequence or buffer.
        return '_Any', None
    module = None
    if base in _SCALARS:
        name = _SCALARS[base]
    else:
        owner, _, kind = base.rpartition('/')
        module = f'{(owner or package).split("/")[0]}.msg'
        name = f'{module}.{kind}'
    return (f'list[{name}]' if array else name), module


def _body(text, package, indent, modules):
    """Yield the lines of a class."""
    fields = []
    for line in text.splitlines():
        found = _LINE.match(line.split('#')[0].strip())
        if found is None:
            continue
        if found['equals']:
            yield f'{indent}{found["name"]}: _ClassVar[{_SCALARS[found["base"]]}]'
            continue
        annotation, module = _type_of(found['base'], found['array'], package)
        if module is not None:
            modules.add(module)
        fields.append((found['name'], annotation))
    for name, annotation in fields:
        yield f'{indent}{name}: {annotation}'
    arguments = ''.join(f'{name}: {annotation} = ..., ' for name, annotation in fields)
    yield f'{indent}def __init__(self, *, {arguments}check_fields: bool = ...) -> None: ...'
    yield f'{indent}@classmethod'
    yield f'{indent}def get_fields_and_field_types(cls) -> dict[str, str]: ...'


def stub(package, kind, definitions):
    """Return the stub of a module such as `std_msgs.msg`, of texts by names of types."""
    modules = set()
    lines = []
    for name, text in sorted(definitions.items()):
        lines += ['', f'class {name}:']
        if kind == 'msg':
            lines += _body(text, package, '    ', modules)
            continue
        parts = re.split(r'^---.*$', text, flags=re.MULTILINE)
        for part, name_of_part in zip(parts, _ACTION if kind == 'action' else _SERVICE):
            lines += [f'    class {name_of_part}:']
            lines += _body(part, package, '        ', modules)
        lines += ['    Impl: _Any' if kind == 'action' else '    Event: _Any']
    imports = [f'import {module}' for module in sorted(modules)]
    return HEAD.format(module=f'{package}.{kind}') + '\n'.join([*imports, *lines, ''])
