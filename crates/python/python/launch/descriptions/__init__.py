"""Descriptions of what actions work on."""

from launch.descriptions.executable import Executable

__all__ = ['Executable']
