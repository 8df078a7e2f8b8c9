"""Substitution: the content of a file."""

from __future__ import annotations

from launch.frontend.expose import expose_substitution
from launch._regular_file import read_regular
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('file-content')
class FileContent(Substitution):
    """The text in a file."""

    def __init__(self, path: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__path = normalize_to_list_of_substitutions(path)

    parse = parse_arguments('file content', 'path', error=AttributeError)

    @property
    def path(self) -> List[Substitution]:
        """The path."""
        return self.__path

    def describe(self) -> str:
        """Return a text for people."""
        return f"FileContent({', '.join(each.describe() for each in self.__path)})"

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        path = perform_substitutions(context, self.__path)
        try:
            return read_regular(path)
        except FileNotFoundError:
            raise SubstitutionFailure(f'File not found: {path}') from None
