"""Parser: reads launch files with the formats that are installed."""

from __future__ import annotations

import importlib
import importlib.metadata as importlib_metadata
import os
import traceback
import warnings

from launch.frontend.expose import instantiate_action
from launch.frontend.parse_substitution import (
    parse_if_substitutions, parse_substitution, replace_escaped_characters,
)
from launch.invalid_launch_file_error import InvalidLaunchFileError
from launch._regular_file import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any, Dict, Iterator, KeysView, List, Optional, Set, TextIO, Tuple, Type, Union,
    )

    from launch.action import Action
    from launch.frontend.entity import Entity
    from launch.launch_description import LaunchDescription
    from launch.substitution import Substitution
    from launch.utilities.type_utils import StrSomeValueType
    from launch.utilities.typing_file_path import FilePath

_OWN_EXTENSIONS = (('launch_ros', 'launch_ros'),)
_OWN_PARSERS = (('xml', 'launch_xml', 'Parser'), ('yaml', 'launch_yaml', 'Parser'))


class InvalidFrontendLaunchFileError(InvalidLaunchFileError):
    """A launch file that no format can read."""


def _load_entry_points(group: str, kind: str) -> Iterator[Tuple[str, Any]]:
    entry_points = importlib_metadata.entry_points()
    # Before Python 3.12 the result may be a dictionary.
    found = (
        entry_points.select(group=group) if hasattr(entry_points, 'select')
        else entry_points.get(group, []))
    for entry_point in found:
        try:
            yield entry_point.name, entry_point.load()
        except Exception:
            warnings.warn(
                f'Failed to load the {kind} extension: {entry_point.name}\n'
                f'{traceback.format_exc()}')


class Parser:
    """Base of the formats; its class methods pick one by the name of a file."""

    extensions_loaded = False
    frontend_parsers: Optional[Dict[str, Type[Parser]]] = None

    @classmethod
    def load_launch_extensions(cls) -> None:
        """Import the packages that add actions and substitutions to launch files."""
        if Parser.extensions_loaded:
            return
        Parser.extensions_loaded = True
        for _, module in _OWN_EXTENSIONS:
            importlib.import_module(module)
        for _ in _load_entry_points('launch.frontend.launch_extension', 'launch'):
            pass

    @classmethod
    def load_parser_implementations(cls) -> None:
        """Import the formats."""
        if Parser.frontend_parsers is not None:
            return
        parsers = {
            name: getattr(importlib.import_module(module), attribute)
            for name, module, attribute in _OWN_PARSERS}
        for name, parser in _load_entry_points('launch.frontend.parser', 'parser'):
            parsers.setdefault(name, parser)
        Parser.frontend_parsers = dict(sorted(parsers.items()))

    @classmethod
    def _parsers(cls) -> Dict[str, Type[Parser]]:
        cls.load_parser_implementations()
        return Parser.frontend_parsers

    def parse_action(self, entity: Entity) -> Action:
        """Return the action of an element."""
        self.load_launch_extensions()
        return instantiate_action(entity, self)

    def parse_substitution(self, value: str) -> List[Substitution]:
        """Return the substitutions of a text."""
        return parse_substitution(value)

    def parse_if_substitutions(self, value: StrSomeValueType) -> Any:
        """Return the value with substitutions in place of text that has some."""
        return parse_if_substitutions(value)

    def escape_characters(self, value: str) -> str:
        """Return the text with escaped characters in place of their escapes."""
        return replace_escaped_characters(value)

    def parse_description(self, entity: Entity) -> LaunchDescription:
        """
        Return the launch description of a root element.

        :raises RuntimeError: if it is no 'launch', or has unknown elements.
        """
        from launch.launch_description import LaunchDescription
        if entity.type_name != 'launch':
            raise RuntimeError(f"Expected 'launch' as root tag, got '{entity.type_name}'")
        self.load_launch_extensions()
        deprecated = entity.get_attr('deprecated', optional=True)
        actions = [self.parse_action(child) for child in entity.children]
        return LaunchDescription(actions, deprecated_reason=deprecated)

    @classmethod
    def get_available_extensions(cls) -> KeysView[str]:
        """Return the names of the formats."""
        return cls._parsers().keys()

    @classmethod
    def is_extension_valid(cls, extension: str) -> bool:
        """Return whether there is a format of the name; deprecated."""
        warnings.warn(
            'Parser.is_extension_valid is deprecated, use Parser.is_filename_valid instead')
        return extension in cls._parsers()

    @classmethod
    def get_parser_from_extension(cls, extension: str) -> Type[Parser]:
        """Return the format of the name; deprecated."""
        warnings.warn(
            'Parser.get_parser_from_extension is deprecated, use '
            'Parser.get_parsers_from_filename instead')
        parsers = cls._parsers()
        if extension not in parsers:
            raise RuntimeError('Not recognized frontend implementation')
        return parsers[extension]

    @classmethod
    def may_parse(cls, filename: str) -> bool:
        """Return whether the format has the ending of a file's name."""
        return any(filename.endswith('.' + ending) for ending in cls.get_file_extensions())

    @classmethod
    def is_filename_valid(cls, filename: str) -> bool:
        """Return whether a format has the ending of a file's name."""
        return any(parser.may_parse(filename) for parser in cls._parsers().values())

    @classmethod
    def get_parsers_from_filename(cls, filename: str) -> List[Type[Parser]]:
        """Return the formats that have the ending of a file's name."""
        return [each for each in cls._parsers().values() if each.may_parse(filename)]

    @classmethod
    def get_file_extensions_from_parsers(cls) -> Set[str]:
        """Return the endings of all formats."""
        return set().union(*(each.get_file_extensions() for each in cls._parsers().values()))

    @classmethod
    def get_file_extensions(cls) -> Set[str]:
        """Return the endings of this format."""
        return set()

    @classmethod
    def load(cls, file: Union[FilePath, TextIO]) -> Tuple[Entity, Parser]:
        """
        Return the root element of a launch file, and the parser of its format.

        :raises InvalidFrontendLaunchFileError: if no format can read it.
        """
        if isinstance(file, (str, bytes, os.PathLike)):
            with open_regular(file) as opened:
                return cls.__load(opened)
        return cls.__load(file)

    @classmethod
    def __load(cls, file: TextIO) -> Tuple[Entity, Parser]:
        name = getattr(file, 'name', '')
        fitting = cls.get_parsers_from_filename(name)
        others = [each for each in cls._parsers().values() if each not in fitting]
        errors: List[Exception] = []
        for parser in (*fitting, *others):
            try:
                return parser.load(file)
            except Exception as error:
                errors.append(error)
                file.seek(0)
        extension = os.path.splitext(name)[1][1:] if fitting else ''
        # Other formats than the file's own say nothing about it.
        raise InvalidFrontendLaunchFileError(
            extension, likely_errors=errors[:len(fitting)] if fitting else errors)
