"""Names of the ament index."""

RESOURCE_INDEX_SUBFOLDER = 'share/ament_index/resource_index'
"""The folder of the index below a prefix."""

AMENT_PREFIX_PATH_ENV_VAR = 'AMENT_PREFIX_PATH'
"""The environment variable that lists the prefixes."""
