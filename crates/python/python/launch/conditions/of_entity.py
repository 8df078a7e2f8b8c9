"""Conditions in launch files: the attributes ``if`` and ``unless``."""

from __future__ import annotations

from launch.conditions.if_condition import IfCondition
from launch.conditions.unless_condition import UnlessCondition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from launch.frontend import Entity, Parser


def conditions_of_entity(entity: Entity, parser: Parser) -> Dict[str, Any]:
    """
    Return the argument ``condition`` of an element; nothing if it has none.

    :raises RuntimeError: if it has two.
    """
    if_text = entity.get_attr('if', optional=True)
    unless_text = entity.get_attr('unless', optional=True)
    if if_text is not None and unless_text is not None:
        raise RuntimeError("if and unless conditions can't be used simultaneously")
    if if_text is not None:
        return {'condition': IfCondition(parser.parse_substitution(if_text))}
    if unless_text is not None:
        return {'condition': UnlessCondition(parser.parse_substitution(unless_text))}
    return {}
