"""Modules of interface packages: `std_msgs.msg` and its siblings.

Each standard package is a tiny package of the wheel that calls `install`. The modules of
other packages are made by the import hooks of `_pteros_import_hook`, which call it, too. A
class is made when it is first asked for.
"""

from __future__ import annotations

import sys
import threading
from _frozen_importlib import ModuleSpec

import _pteros_import_hook
from pteros import _message, _native


def install(module, space):
    """Give a module `pkg.msg`, `pkg.srv` or `pkg.action` its classes."""
    package, kind = module.split('.')
    names = sorted(entry.split('/')[1] for entry in _native.get_interfaces(package)
                   if entry.startswith(f'{kind}/'))

    def __getattr__(name):
        if name.startswith('__') or not name[:1].isupper():
            raise AttributeError(f'module {module!r} has no attribute {name!r}')
        try:
            cls = _native.get_message_class(f'{package}/{kind}/{name}')
        except LookupError as error:
            if name in names:
                # `from module import name` hides an AttributeError and its reason.
                raise ImportError(
                    f'cannot import name {name!r} from {module!r}: {error}') from None
            raise AttributeError(f'module {module!r} has no attribute {name!r}: {error}') from None
        space[name] = cls
        return cls

    def __dir__():
        return sorted({*space, *names})

    space['__getattr__'] = __getattr__
    space['__dir__'] = __dir__
    space['__all__'] = names


_loading = threading.RLock()
_in_progress = set()


def load_package(package, folder):
    """Load the definitions in a folder, and the packages that they use.

    Those come first: another thread sees a package when all that it uses is there.
    """
    with _loading:
        if package in _in_progress:
            return
        _in_progress.add(package)
        try:
            for used in _native.get_packages_used(package, folder):
                find_package(used)
            _native.load_interface_package(package, folder)
        finally:
            _in_progress.discard(package)


def find_package(package):
    """Search for the definitions of a package and load them. Return whether they are there."""
    folder = _pteros_import_hook.package_folder(package, with_python_packages=True)
    if folder is None:
        return False
    load_package(package, folder)
    return True


class _TypeModuleFinder:
    """
    Finds `std_msgs.msg._string`, which has the class `String`.

    It has no base class: `importlib.abc` takes as long to import as rclpy does.
    """

    def find_spec(self, full_name, path=None, target=None):
        parts = full_name.split('.')
        if len(parts) != 3 or parts[1] not in _pteros_import_hook.KINDS or parts[2][:1] != '_':
            return None
        if self._name(parts) is None:
            return None
        return ModuleSpec(full_name, self)

    @staticmethod
    def _name(parts):
        package, kind, _ = parts
        try:
            entries = _native.get_interfaces(package)
        except LookupError:
            return None
        wanted = '.'.join(parts)
        for entry in entries:
            of, name = entry.split('/')
            if of == kind and _message.module_name(package, kind, name) == wanted:
                return name
        return None

    def create_module(self, spec):
        parts = spec.name.split('.')
        _native.get_message_class('/'.join([*parts[:2], self._name(parts)]))
        return sys.modules.get(spec.name)

    def exec_module(self, module):
        """Do nothing: making the class has filled the module."""


if not any(isinstance(finder, _TypeModuleFinder) for finder in sys.meta_path):
    _pteros_import_hook.install()
    sys.meta_path.append(_TypeModuleFinder())
