"""The prefixes in which packages are looked for."""

from __future__ import annotations

import os
import sys

from ament_index_python.constants import AMENT_PREFIX_PATH_ENV_VAR, RESOURCE_INDEX_SUBFOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List


def get_search_paths() -> List[str]:
    """
    Return the existing prefixes, the most important one first.

    They are those of AMENT_PREFIX_PATH, then the one of this Python if pip has installed
    packages with an index there.

    :raises EnvironmentError: if there is none.
    """
    variable = os.environ.get(AMENT_PREFIX_PATH_ENV_VAR, '')
    paths = [path for path in variable.split(os.pathsep) if path and os.path.exists(path)]
    if sys.prefix not in paths and os.path.isdir(
            os.path.join(sys.prefix, RESOURCE_INDEX_SUBFOLDER)):
        paths.append(sys.prefix)
    if not paths and not variable:
        raise EnvironmentError(
            f"Environment variable '{AMENT_PREFIX_PATH_ENV_VAR}' is not set or empty, and "
            f'{sys.prefix!r} has no installed ROS packages')
    return paths
