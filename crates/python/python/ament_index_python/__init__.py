"""The ament index: installed packages and their resources, found through prefixes."""

from ament_index_python.constants import RESOURCE_INDEX_SUBFOLDER
from ament_index_python.packages import (
    PackageNotFoundError, get_package_prefix, get_package_share_directory, get_package_share_path,
    get_packages_with_prefixes,
)
from ament_index_python.resources import (
    InvalidResourceNameError, InvalidResourceTypeNameError, get_resource, get_resource_types,
    get_resources, has_resource,
)
from ament_index_python.search_paths import get_search_paths

__all__ = [
    'InvalidResourceNameError', 'InvalidResourceTypeNameError', 'PackageNotFoundError',
    'RESOURCE_INDEX_SUBFOLDER', 'get_package_prefix', 'get_package_share_directory',
    'get_package_share_path', 'get_packages_with_prefixes', 'get_resource', 'get_resource_types',
    'get_resources', 'get_search_paths', 'has_resource',
]
