"""Substitution: whether two values are equal."""

from __future__ import annotations

import math

from launch.frontend.expose import expose_substitution
from launch.substitution import Substitution
from launch.substitutions._parse_arguments import parse_arguments
from launch.substitutions.boolean_substitution import _Pair, boolean_text
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch.utilities.type_utils import is_substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from launch.launch_context import LaunchContext

_BOOLEANS = {'true': True, '1': True, 'false': False, '0': False}


def _operand(value: Any) -> List[Substitution]:
    if value is None:
        value = ''
    elif isinstance(value, bool):
        value = boolean_text(value)
    elif isinstance(value, (int, float)) or not is_substitution(value):
        value = str(value)
    return normalize_to_list_of_substitutions(value)


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None


def are_equal(left: str, right: str) -> bool:
    """Compare as truth values, else as numbers, else as text."""
    booleans = _BOOLEANS.get(left.lower()), _BOOLEANS.get(right.lower())
    if None not in booleans:
        return booleans[0] == booleans[1]
    numbers = _number(left), _number(right)
    if None not in numbers:
        return math.isclose(*numbers)
    return left == right


@expose_substitution('equals')
class EqualsSubstitution(_Pair):
    """'true' if two values are equal: as truth values, else as numbers, else as text."""

    _normalize = staticmethod(_operand)
    parse = parse_arguments('equals', 'left', 'right')

    def perform(self, context: LaunchContext) -> str:
        """Return 'true' or 'false'."""
        return boolean_text(are_equal(
            perform_substitutions(context, self._left),
            perform_substitutions(context, self._right)))
