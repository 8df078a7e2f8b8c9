"""Sources of launch descriptions in YAML."""

from launch_yaml.launch_description_sources.yaml_launch_description_source import (
    YAMLLaunchDescriptionSource,
)

__all__ = ['YAMLLaunchDescriptionSource']
