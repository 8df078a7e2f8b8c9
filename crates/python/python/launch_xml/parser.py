"""Parser of launch files in XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from launch import frontend
from launch_xml.entity import Entity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from typing import Set, Tuple, Union


class Parser(frontend.Parser):
    """The XML format."""

    @classmethod
    def load(cls, file: Union[str, io.TextIOBase]) -> Tuple[Entity, Parser]:
        """Return the root element of a file, and a parser."""
        return Entity(ElementTree.parse(file).getroot()), cls()

    @classmethod
    def get_file_extensions(cls) -> Set[str]:
        """Return the endings of XML launch files."""
        return {'launch.xml', 'xml', 'launch'}
