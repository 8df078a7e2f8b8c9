"""Packages of the ament index."""

from __future__ import annotations

import os
import re

from ament_index_python.resources import get_resource, get_resources
from ament_index_python.search_paths import get_search_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from typing import Dict


class PackageNotFoundError(KeyError):
    """No prefix has the package."""


def get_packages_with_prefixes() -> Dict[str, str]:
    """Return the names of all packages, with the prefix of each."""
    return get_resources('packages')


def get_package_prefix(package_name: str) -> str:
    """
    Return the prefix of a package.

    :raises PackageNotFoundError: if no prefix has it.
    :raises ValueError: if the name is invalid.
    """
    # A package name is letters, digits, underscores and hyphens, as in setup.py or package.xml.
    if not re.fullmatch('[a-zA-Z0-9][a-zA-Z0-9_-]*', package_name, re.IGNORECASE):
        raise ValueError(
            f"'{package_name}' is not a valid package name: use letters, digits, '_' and '-'")
    try:
        return get_resource('packages', package_name)[1]
    except LookupError:
        raise PackageNotFoundError(
            f"package '{package_name}' not found, searching: {get_search_paths()}") from None


def get_package_share_directory(package_name: str, print_warning: bool = True) -> str:
    """
    Return the folder ``share/<package>`` of a package.

    :param print_warning: Warn if the folder is not there.
    :raises PackageNotFoundError: if no prefix has the package.
    """
    path = os.path.join(get_package_prefix(package_name), 'share', package_name)
    if print_warning and not os.path.exists(path):
        import warnings
        warnings.warn(f'Share directory for {package_name} ({path}) does not exist.', stacklevel=2)
    return path


def get_package_share_path(package_name: str, print_warning: bool = True) -> pathlib.Path:
    """Return the folder of :func:`get_package_share_directory` as a path."""
    import pathlib
    return pathlib.Path(get_package_share_directory(package_name, print_warning))
