"""Substitution: a name that no other node has."""

from __future__ import annotations

import os
import random
import re
import socket
import sys

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.utilities import (
    describe_substitutions, normalize_to_list_of_substitutions, perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('anon')
class AnonName(Substitution):
    """A unique name that begins with a given one; the same name gives the same one."""

    def __init__(self, name: SomeSubstitutionsType) -> None:
        super().__init__()
        self.__name = normalize_to_list_of_substitutions(name)

    parse = parse_arguments('anon', 'name')

    @property
    def name(self) -> List[Substitution]:
        """The beginning of the name."""
        return self.__name

    def describe(self) -> str:
        """Return a text for people."""
        return f'AnonName({describe_substitutions(self.__name)})'

    def perform(self, context: LaunchContext) -> str:
        """Return the name."""
        name = perform_substitutions(context, self.__name)
        return context.launch_configurations.setdefault('anon' + name, self.compute_name(name))

    def compute_name(self, id_value: str) -> str:
        """Return a new name."""
        number = random.randint(0, sys.maxsize)
        name = f'{id_value}_{socket.gethostname()}_{os.getpid()}_{number}'
        return re.sub('[.:-]', '_', name)
