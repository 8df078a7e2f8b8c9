"""Normal form of remapping rules."""

from __future__ import annotations

from launch.utilities import ensure_argument_type, normalize_to_list_of_substitutions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from launch_ros.remap_rule_type import RemapRule, SomeRemapRule, SomeRemapRules


def normalize_remap_rule(remap_rule: SomeRemapRule) -> RemapRule:
    """
    Return a rule as two tuples of substitutions.

    :raises TypeError: if it is no tuple of two.
    """
    ensure_argument_type(remap_rule, tuple, 'remap_rule')
    if len(remap_rule) != 2:
        raise TypeError(
            f'remap_rule must be a tuple of length 2, got length {len(remap_rule)}')
    source, target = remap_rule
    return (
        tuple(normalize_to_list_of_substitutions(source)),
        tuple(normalize_to_list_of_substitutions(target)))


def normalize_remap_rules(remap_rules: SomeRemapRules) -> Iterator[RemapRule]:
    """Yield the rules in their normal form."""
    for rule in remap_rules:
        yield normalize_remap_rule(rule)
