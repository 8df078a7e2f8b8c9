"""Import hooks for interface packages that have definition files but no Python modules.

`pteros.pth` installs them when Python starts, so that `from my_msgs.msg import Pose2` works
before `import rclpy`. They import nothing until a package is found, because every program of
the environment runs them:

- `my_msgs.msg` where the folder of the Python package `my_msgs` has `msg/*.msg`,
- in the folders of `PTEROS_INTERFACE_PATH`, each with packages or one package in it, at any
  depth, as in the source folder of a workspace,
- in `share/` of the prefixes of `AMENT_PREFIX_PATH`.

A module that Python finds itself wins.
"""

import os
import sys
from _frozen_importlib import ModuleSpec

PATH = 'PTEROS_INTERFACE_PATH'
"""Folders of interface packages, separated by colons."""

KINDS = ('msg', 'srv', 'action')
# Limits of the search below a folder of the path.
_DEPTH_MAX = 8
_FOLDERS_MAX = 20_000
_SUFFIXES = ('.msg', '.srv', '.action', '.idl')


def has_definitions(folder, kind):
    """Whether a package's folder has definitions of a kind: files with names of types."""
    try:
        with os.scandir(os.path.join(folder, kind)) as entries:
            return any(
                entry.name.endswith(_SUFFIXES) and entry.name[:1].isupper() for entry in entries)
    except OSError:
        return False


def _is_package(folder):
    return any(has_definitions(folder, kind) for kind in KINDS)


def _name_of(folder):
    """Return the name in `package.xml`, else the folder's own with `-` as `_`."""
    import re
    try:
        with open(os.path.join(folder, 'package.xml'), encoding='utf-8', errors='replace') as file:
            text = re.sub('<!--.*?-->', '', file.read(1 << 20), flags=re.DOTALL)
    except OSError:
        text = ''
    found = re.search(r'<name>\s*(\w+)\s*</name>', text)
    return found[1] if found else os.path.basename(os.path.abspath(folder)).replace('-', '_')


def _listed(variable):
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]


# The packages below a folder of the path: folders by name.
_below = {}


def _packages_below(root):
    """Return the packages at any depth below a folder; the nearer ones win. Searched once.

    As colcon does, the search leaves out hidden folders, those with a mark to be ignored, and
    what lies within a package.
    """
    known = _below.get(root)
    if known is not None:
        return known
    found = _below[root] = {}
    level = [root]
    count = 0
    for _ in range(_DEPTH_MAX):
        deeper = []
        for folder in level:
            count += 1
            if count > _FOLDERS_MAX:
                return found
            try:
                with os.scandir(folder) as entries:
                    names = {entry.name: entry.is_dir() for entry in entries}
            except OSError:
                continue
            if 'COLCON_IGNORE' in names or 'AMENT_IGNORE' in names:
                continue
            if _is_package(folder):
                found.setdefault(_name_of(folder), folder)
            elif 'package.xml' not in names:
                deeper.extend(
                    os.path.join(folder, name) for name in sorted(names)
                    if names[name] and name[0] != '.')
        level = deeper
    return found


def _candidates(package):
    """Give the folders that may be those of a package, the most particular first."""
    for root in _listed(PATH):
        yield os.path.join(root, package)
        yield os.path.join(root, 'share', package)
        if _is_package(root) and _name_of(root) == package:
            yield root
        deep = _packages_below(root).get(package)
        if deep is not None:
            yield deep
    for prefix in _listed('AMENT_PREFIX_PATH'):
        yield os.path.join(prefix, 'share', package)


def package_folder(package, with_python_packages=False):
    """Return the folder with the definitions of a package, or None.

    `with_python_packages` also searches the folders of Python packages, where Python's own
    import has not.
    """
    if not package.isidentifier():
        return None
    candidates = list(_candidates(package))
    if with_python_packages:
        roots = [root for root in sys.path if isinstance(root, str)]
        candidates.extend(os.path.join(root or os.curdir, package) for root in roots)
    # Most have no folder of that name: one question to the system each.
    return next((folder for folder in candidates
                 if os.path.isdir(folder) and _is_package(folder)), None)


def kind_getter(package):
    """Return the `__getattr__` of a package, which imports `msg`, `srv` or `action`.

    Programs write `import std_msgs` and use `std_msgs.msg`. In ROS 2 some other module has
    imported it by then.
    """
    def __getattr__(name):
        if name in KINDS:
            from importlib import import_module
            full_name = f'{package}.{name}'
            try:
                return import_module(full_name)
            except ModuleNotFoundError as error:
                if error.name != full_name:
                    raise
        raise AttributeError(f'module {package!r} has no attribute {name!r}')
    return __getattr__


class _KindModuleFinder:
    """Finds `my_msgs.msg`.

    It comes before Python's own finder, which takes a folder `msg` without Python files
    for a package.
    """

    def find_spec(self, full_name, path=None, target=None):
        package, _, kind = full_name.partition('.')
        if kind not in KINDS or path is None:
            return None
        folders = [folder for folder in path if isinstance(folder, str)]
        for folder in folders:
            inner = os.path.join(folder, kind)
            if os.path.exists(os.path.join(inner, '__init__.py')) or os.path.exists(f'{inner}.py'):
                return None
        folder = next((folder for folder in folders if has_definitions(folder, kind)), None)
        if folder is None:
            folder = package_folder(package)
            if folder is None or not has_definitions(folder, kind):
                return None
        try:
            from pteros._interfaces import load_package
            load_package(package, folder)
        except (LookupError, OSError) as error:
            raise ImportError(f'interfaces of {package} in {folder}: {error}') from error
        return ModuleSpec(full_name, self, is_package=True)

    def create_module(self, spec):
        """Let Python make the module."""

    def exec_module(self, module):
        from pteros._interfaces import install
        install(module.__name__, module.__dict__)


class _PackageFinder:
    """Finds `my_msgs` where only the search for definitions does. It comes last."""

    def find_spec(self, full_name, path=None, target=None):
        if path is not None or package_folder(full_name) is None:
            return None
        return ModuleSpec(full_name, self, is_package=True)

    def create_module(self, spec):
        """Let Python make the module."""

    def exec_module(self, module):
        module.__doc__ = f'Interfaces of {module.__name__}.'
        module.__dict__['__getattr__'] = kind_getter(module.__name__)


def install():
    """Install the hooks, once."""
    if not any(isinstance(finder, _PackageFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KindModuleFinder())
        sys.meta_path.append(_PackageFinder())
