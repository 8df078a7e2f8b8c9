"""Launch files in YAML."""

from launch_yaml import launch_description_sources
from launch_yaml.entity import Entity
from launch_yaml.parser import Parser

__all__ = ['Entity', 'Parser', 'launch_description_sources']
