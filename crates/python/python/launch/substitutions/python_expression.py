"""Substitution: the value of a Python expression."""

from __future__ import annotations

import collections.abc
import importlib

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch.utilities import (
    describe_substitutions, ensure_argument_type, normalize_to_list_of_substitutions,
    perform_substitutions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence, Tuple, Type

    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


@expose_substitution('eval')
class PythonExpression(Substitution):
    """The value of a Python expression as text; the names of ``math`` are there."""

    def __init__(
        self,
        expression: SomeSubstitutionsType,
        python_modules: SomeSubstitutionsType = ('math',),
    ) -> None:
        super().__init__()
        types = (str, Substitution, collections.abc.Iterable)
        ensure_argument_type(expression, types, 'expression', 'PythonExpression')
        ensure_argument_type(python_modules, types, 'python_modules', 'PythonExpression')
        self.__expression = normalize_to_list_of_substitutions(expression)
        self.__python_modules = normalize_to_list_of_substitutions(python_modules)

    @classmethod
    def parse(
        cls, data: Sequence[SomeSubstitutionsType],
    ) -> Tuple[Type[PythonExpression], Dict[str, Any]]:
        """Return the class and its arguments."""
        if len(data) not in (1, 2):
            raise TypeError('eval substitution expects 1 or 2 arguments')
        kwargs: Dict[str, Any] = {'expression': data[0]}
        if len(data) == 2:
            names = ''.join(part.perform(None) for part in data[1])
            kwargs['python_modules'] = [
                name.strip() for name in names.split(',') if name.strip()]
        return cls, kwargs

    @property
    def expression(self) -> List[Substitution]:
        """The expression."""
        return self.__expression

    @property
    def python_modules(self) -> List[Substitution]:
        """The modules that it can use."""
        return self.__python_modules

    def describe(self) -> str:
        """Return a text for people."""
        modules = ', '.join(each.describe() for each in self.__python_modules)
        return f'PythonExpr({describe_substitutions(self.__expression)}, [{modules}])'

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        names: Dict[str, Any] = {}
        for each in self.__python_modules:
            module = importlib.import_module(context.perform_substitution(each))
            if module.__name__ == 'math':
                names.update(vars(module))
            names[module.__name__] = module
        expression = perform_substitutions(context, self.__expression)
        try:
            return str(eval(expression, {}, names))
        except NameError as error:
            raise NameError(f"{error}, in the Python expression '{expression}'") from None
        except Exception as error:
            raise SubstitutionFailure(
                f"the Python expression '{expression}' fails with {type(error).__name__}: "
                f'{error}') from error
