"""Parser of launch files in YAML."""

from __future__ import annotations

import os

from launch import frontend
from launch._regular_file import open_regular
from launch.utilities.yaml_reader import load_yaml
from launch_yaml.entity import Entity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Set, TextIO, Tuple, Union

    from launch.utilities.typing_file_path import FilePath


class Parser(frontend.Parser):
    """The YAML format."""

    @classmethod
    def load(cls, file: Union[FilePath, TextIO]) -> Tuple[Entity, Parser]:
        """Return the root element of a file, and a parser."""
        if isinstance(file, (str, bytes, os.PathLike)):
            with open_regular(file) as opened:
                tree = load_yaml(opened.read())
        else:
            tree = load_yaml(file.read())
        if not isinstance(tree, dict) or len(tree) != 1:
            raise RuntimeError('Expected only one root')
        name, element = next(iter(tree.items()))
        return Entity(element, name), cls()

    @classmethod
    def get_file_extensions(cls) -> Set[str]:
        """Return the endings of YAML launch files."""
        return {'launch.yaml', 'launch.yml', 'yaml', 'yml', 'launch'}
