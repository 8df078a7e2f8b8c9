"""Import hooks for interface packages that have definition files but no Python modules.

`pteros.pth` installs them when Python starts, so that `from my_msgs.msg import Pose2` works
before `import rclpy`. They import nothing until a package is found, or searched for in
`PTEROS_INTERFACE_PATH`, because every program of the environment runs them:

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


def _listed(variable):
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]


def _candidates(package, with_python_packages):
    """Give the folders that may be those of a package, the most particular first."""
    roots = _listed(PATH)
    if roots:
        # The native module has the rule; programs without the variable do not load it.
        try:
            from pteros._native import find_interface_package
        except ImportError:
            # That module itself is being imported, and tries one that is not there.
            pass
        else:
            found = find_interface_package(package, roots)
            if found is not None:
                yield found
    for prefix in _listed('AMENT_PREFIX_PATH'):
        yield os.path.join(prefix, 'share', package)
    if with_python_packages:
        for root in sys.path:
            if isinstance(root, str):
                yield os.path.join(root or os.curdir, package)


def package_folder(package, with_python_packages=False):
    """Return the folder with the definitions of a package, or None.

    `with_python_packages` also searches the folders of Python packages, where Python's own
    import has not.
    """
    if not package.isidentifier():
        return None
    # Most have no folder of that name: one question to the system each.
    return next((folder for folder in _candidates(package, with_python_packages)
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
