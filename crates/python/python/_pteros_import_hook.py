"""Import hooks for interface packages that have definition files but no Python modules.

`pteros.pth` installs them when Python starts, so that `from my_msgs.msg import Pose2` works
before `import rclpy`. They load nothing of Pteros until a package is found:

- `my_msgs.msg` where the folder of the Python package `my_msgs` has `msg/*.msg`,
- in the folders of `PTEROS_INTERFACE_PATH`, each with packages or one package in it,
- in `share/` of the prefixes of `AMENT_PREFIX_PATH`.

A module that Python finds itself wins.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import re
import sys

PATH = 'PTEROS_INTERFACE_PATH'
"""Folders of interface packages, separated by colons."""

KINDS = ('msg', 'srv', 'action')
_SUFFIXES = ('.msg', '.srv', '.action', '.idl')


def has_definitions(folder, kind):
    """Whether a package's folder has definitions of a kind."""
    try:
        with os.scandir(os.path.join(folder, kind)) as entries:
            return any(entry.name.endswith(_SUFFIXES) for entry in entries)
    except OSError:
        return False


def _is_package(folder):
    return any(has_definitions(folder, kind) for kind in KINDS)


def _name_of(folder):
    """Return the name in `package.xml`, else the folder's own with `-` as `_`."""
    try:
        with open(os.path.join(folder, 'package.xml'), encoding='utf-8', errors='replace') as file:
            text = re.sub('<!--.*?-->', '', file.read(1 << 20), flags=re.DOTALL)
    except OSError:
        text = ''
    found = re.search(r'<name>\s*(\w+)\s*</name>', text)
    return found[1] if found else os.path.basename(os.path.abspath(folder)).replace('-', '_')


def _listed(variable):
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]


def _candidates(package):
    """Give the folders that may be those of a package, the most particular first."""
    for root in _listed(PATH):
        yield os.path.join(root, package)
        yield os.path.join(root, 'share', package)
        if _is_package(root) and _name_of(root) == package:
            yield root
    for prefix in _listed('AMENT_PREFIX_PATH'):
        yield os.path.join(prefix, 'share', package)
    for root in sys.path:
        yield os.path.join(root or os.curdir, package)


def package_folder(package):
    """Return the folder with the definitions of a package, or None."""
    if not package.isidentifier():
        return None
    return next((folder for folder in _candidates(package) if _is_package(folder)), None)


class _KindModuleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `my_msgs.msg`.

    It comes before Python's own finder, which takes a folder `msg` without Python files
    for a package.
    """

    def find_spec(self, full_name, path=None, target=None):
        package, _, kind = full_name.partition('.')
        if kind not in KINDS or path is None:
            return None
        for folder in path:
            inner = os.path.join(folder, kind)
            if os.path.exists(os.path.join(inner, '__init__.py')) or os.path.exists(f'{inner}.py'):
                return None
        folder = next((folder for folder in path if has_definitions(folder, kind)), None)
        if folder is None:
            folder = package_folder(package)
            if folder is None or not has_definitions(folder, kind):
                return None
        from pteros._interfaces import load_package
        load_package(package, folder)
        return importlib.machinery.ModuleSpec(full_name, self, is_package=True)

    def create_module(self, spec):
        """Let Python make the module."""

    def exec_module(self, module):
        from pteros._interfaces import install
        install(module.__name__, module.__dict__)


class _PackageFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `my_msgs` where only the search for definitions does. It comes last."""

    def find_spec(self, full_name, path=None, target=None):
        if path is not None or package_folder(full_name) is None:
            return None
        return importlib.machinery.ModuleSpec(full_name, self, is_package=True)

    def create_module(self, spec):
        """Let Python make the module."""

    def exec_module(self, module):
        module.__doc__ = f'Interfaces of {module.__name__}.'


def install():
    """Install the hooks, once."""
    if not any(isinstance(finder, _PackageFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KindModuleFinder())
        sys.meta_path.append(_PackageFinder())
