"""
Writes the reference of the wheel's Python packages from their docstrings.

It parses the sources and imports none of them, so it needs no native module. A page per
public module goes into the folder; `cargo xtask book` adds them to the book::

    python3 crates/python/api_reference.py FOLDER
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Dict, Iterator, List, Tuple, Union

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, 'python')
PACKAGES = (
    'rclpy', 'tf2_ros', 'tf2_geometry_msgs', 'tf2_sensor_msgs', 'message_filters',
    'sensor_msgs_py', 'ament_index_python', 'launch', 'launch_ros', 'rosidl_runtime_py')
CONSTANT_COLUMNS = 100

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def modules(package: str) -> Iterator[Tuple[str, str]]:
    """Yield name and file of each public module of a package, in order."""
    found = []
    for folder, folders, files in os.walk(os.path.join(SOURCES, package)):
        folders[:] = [name for name in folders if not name.startswith(('_', '.'))]
        parts = os.path.relpath(folder, SOURCES).split(os.sep)
        for file in files:
            name, extension = os.path.splitext(file)
            if extension == '.py' and (name == '__init__' or not name.startswith('_')):
                dotted = parts if name == '__init__' else [*parts, name]
                found.append(('.'.join(dotted), os.path.join(folder, file)))
    return iter(sorted(found))


def markdown(docstring: str) -> List[str]:
    """Return a docstring as lines of Markdown; fields become a list."""
    lines: List[str] = []
    in_field = in_code = False
    for line in docstring.splitlines():
        line = re.sub(r':(?:\w+:)?\w+:`~?([^`]+)`', r'`\1`', line).replace('``', '`')
        field = re.match(r':(\w+)(?: ([^:]+))?: ?(.*)$', line)
        if in_code and line and not line.startswith('    '):
            in_code = False
        if field:
            if not in_field and lines and lines[-1]:
                lines.append('')
            kind, name, text = field.groups()
            label = {'param': '', 'raises': 'raises ', 'return': 'returns', 'returns': 'returns',
                     }.get(kind, kind + ' ')
            lines.append(f'- {label}' + (f'`{name}`' if name else '') + f': {text}')
            in_field = True
        elif in_field and line.startswith(' '):
            lines.append('  ' + line.strip())
        elif in_code:
            lines.append(line)
        else:
            in_field = False
            if line.endswith('::'):
                line, in_code = line[:-1], True
            lines.append(line if in_code else escaped(line))
    return lines


def escaped(line: str) -> str:
    """Return a line whose angle brackets and asterisks outside of code stay text."""
    parts = line.split('`')
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r'([<*\[\]])', r'\\\1', parts[index])
    return '`'.join(parts)


def signature(function: Function) -> str:
    """Return the declaration of a function without ``self`` and ``cls``."""
    arguments = ast.unparse(function.args)
    arguments = re.sub(r'^(self|cls)(, /)?(, |$)', '', arguments)
    prefix = 'async def ' if isinstance(function, ast.AsyncFunctionDef) else 'def '
    result = f' -> {ast.unparse(function.returns)}' if function.returns else ''
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    kind = ''.join(f'@{name}\n' for name in decorators
                   if name in ('property', 'classmethod', 'staticmethod'))
    return f'{kind}{prefix}{function.name}({arguments}){result}'


def described(declaration: str, node: ast.AST) -> List[str]:
    """Return a declaration and its docstring."""
    text = ast.get_docstring(node)  # type: ignore[arg-type]
    lines = ['```python', *declaration.splitlines(), '```']
    return lines + (markdown(text) if text else []) + ['']


def is_shown(node: ast.stmt) -> bool:
    """Return whether a definition is public and no setter or overload."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    hidden = any(name.endswith(('.setter', '.deleter', 'overload')) for name in decorators)
    return not hidden and not node.name.startswith('_')


def is_constant(member: ast.stmt) -> bool:
    """Return whether a statement of a class assigns a value to one public name."""
    if isinstance(member, ast.Assign) and len(member.targets) == 1:
        target, is_assigned = member.targets[0], True
    elif isinstance(member, ast.AnnAssign):
        target, is_assigned = member.target, member.value is not None
    else:
        return False
    return is_assigned and isinstance(target, ast.Name) and not target.id.startswith('_')


def constants(body: List[ast.stmt]) -> List[str]:
    """Return enum members and constants of a class as one block, long values shortened."""
    lines = []
    for member in body:
        if not is_constant(member):
            continue
        text = ast.unparse(member)
        if len(text) > CONSTANT_COLUMNS:
            text = text.partition(' = ')[0] + ' = ...'
        lines.append(text)
    return ['```python', *lines, '```', ''] if lines else []


def class_lines(node: ast.ClassDef) -> List[str]:
    """Return the section of a class."""
    bases = ', '.join(ast.unparse(base) for base in node.bases)
    lines = [f'## {node.name}']
    lines += described(f'class {node.name}' + (f'({bases})' if bases else ''), node)
    lines += constants(node.body)
    for member in node.body:
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
                is_shown(member) or member.name == '__init__'):
            lines += described(signature(member), member)
    return lines


def module_lines(name: str, file: str) -> List[str]:
    """Return the page of a module; empty if it defines no public name."""
    with open(file, encoding='utf-8') as source:
        tree = ast.parse(source.read())
    lines: List[str] = []
    for node in tree.body:
        if not is_shown(node):
            continue
        if isinstance(node, ast.ClassDef):
            lines += class_lines(node)
        else:
            lines += [f'## {node.name}', *described(signature(node), node)]  # type: ignore
    if not lines:
        return []
    text = ast.get_docstring(tree)
    return [f'# {name}', *(markdown(text) if text else []), '', *lines]


def pages() -> Dict[str, str]:
    """Return the text of each page by its file name, in the order of the book."""
    texts: Dict[str, str] = {}
    for package in PACKAGES:
        for name, file in modules(package):
            lines = module_lines(name, file)
            if lines:
                texts[f'{name}.md'] = '\n'.join(lines).rstrip() + '\n'
    return texts


def main() -> int:
    """Write the pages into the folder that is named."""
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        print('usage: api_reference.py FOLDER', file=sys.stderr)
        return 2
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith('.md'):
            os.remove(os.path.join(folder, name))
    for name, text in pages().items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as page:
            page.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
