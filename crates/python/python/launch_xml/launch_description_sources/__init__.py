"""Sources of launch descriptions in XML."""

from launch_xml.launch_description_sources.xml_launch_description_source import (
    XMLLaunchDescriptionSource,
)

__all__ = ['XMLLaunchDescriptionSource']
