"""The interfaces that are installed: those of the wheel, and those of the ament index."""

from __future__ import annotations

import os

from ament_index_python import get_resource, get_resources, has_resource
from pteros import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List

_SUFFIXES = ('.msg', '.srv', '.action', '.idl')


def _ament_packages() -> Dict[str, str]:
    try:
        return get_resources('rosidl_interfaces')
    except EnvironmentError:
        # No ROS workspace is sourced. The wheel has interfaces of its own.
        return {}


def get_interface_packages() -> Dict[str, str]:
    """Return the packages that have interfaces, with the prefix of each."""
    import pteros
    own = os.path.dirname(pteros.__file__)
    packages = {name: own for name in _native.get_interface_packages()}
    packages.update(_ament_packages())
    return packages


def _exists(package: str, packages: Dict[str, str]) -> bool:
    if package in packages:
        return True
    try:
        if has_resource('packages', package):
            return True
    except EnvironmentError:
        # No ROS workspace is sourced.
        pass
    # One of ``PTEROS_INTERFACE_PATH`` has a module, whether a workspace is sourced or not.
    from importlib.util import find_spec
    return find_spec(package) is not None


def _get_interfaces(package_names: Iterable[str] = ()) -> Dict[str, List[str]]:
    names = list(package_names)
    ament = _ament_packages()
    packages = get_interface_packages()
    missing = {name for name in names if not _exists(name, packages)}
    if missing:
        raise LookupError(f'Unknown packages {missing}')
    result: Dict[str, List[str]] = {}
    for package in names or packages:
        if package in ament:
            content, _ = get_resource('rosidl_interfaces', package)
            found = {
                os.path.splitext(line)[0] for line in content.splitlines()
                if line.endswith(('.msg', '.srv', '.action')) or line.endswith('.idl')}
            result[package] = sorted(found)
        else:
            try:
                result[package] = sorted(_native.get_interfaces(package))
            except LookupError:
                # A package without interfaces.
                continue
    return result


def _of_kind(kind: str, package_names: Iterable[str]) -> Dict[str, List[str]]:
    result = {}
    for package, interfaces in _get_interfaces(package_names).items():
        # Parts of services and actions are listed in the index too.
        names = [
            each for each in interfaces if each.startswith(kind + '/') and each.count('/') == 1]
        if names:
            result[package] = names
    return result


def get_interfaces(package_names: Iterable[str] = ()) -> Dict[str, List[str]]:
    """
    Return the interfaces of packages, such as ``msg/String``.

    :param package_names: The packages; none stands for all.
    :raises LookupError: if a package does not exist.
    """
    return _get_interfaces(package_names)


def get_message_interfaces(package_names: Iterable[str] = ()) -> Dict[str, List[str]]:
    """Return the messages of packages, such as ``msg/String``; see :func:`get_interfaces`."""
    return _of_kind('msg', package_names)


def get_service_interfaces(package_names: Iterable[str] = ()) -> Dict[str, List[str]]:
    """Return the services of packages, such as ``srv/Empty``; see :func:`get_interfaces`."""
    return _of_kind('srv', package_names)


def get_action_interfaces(package_names: Iterable[str] = ()) -> Dict[str, List[str]]:
    """Return the actions of packages, such as ``action/Fibonacci``; see :func:`get_interfaces`."""
    return _of_kind('action', package_names)


def get_interface_path(interface_name: str) -> str:
    """
    Return the path of an interface definition file.

    The interfaces of the wheel have none; ``pteros interface show`` prints them.

    :param interface_name: ``package/kind/Name``, with or without a file suffix.
    :raises ValueError: if the name is malformed.
    :raises LookupError: if there is no such file.
    """
    parts = interface_name.split('/')
    if len(parts) < 2 or not all(parts):
        raise ValueError(
            f"Invalid name '{interface_name}'. Expected at least two parts separated by '/'")
    if '..' in parts:
        raise ValueError(f"Invalid name '{interface_name}'. Must not contain '..'")
    package = parts[0]
    try:
        prefix = has_resource('packages', package)
    except EnvironmentError:
        prefix = False
    if prefix:
        folder = os.path.join(prefix, 'share', package)
    else:
        # One that only the search for definitions finds.
        from _pteros_import_hook import package_folder
        found = package_folder(package, with_python_packages=True)
        if found is None:
            raise LookupError(f"Unknown package '{package}', or its interfaces are no files")
        folder = found
        if len(parts) == 2:
            parts.insert(1, 'msg')
    path = os.path.join(folder, *parts[1:])
    if os.path.splitext(interface_name)[1] in _SUFFIXES and os.path.exists(path):
        return path
    kind = parts[1] if len(parts) > 2 else 'msg'
    for suffix in ('.' + kind, '.idl'):
        if os.path.exists(path + suffix):
            return path + suffix
    raise LookupError(f"Could not find the interface '{path}'")
