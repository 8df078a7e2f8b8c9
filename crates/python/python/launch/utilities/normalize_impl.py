"""Normal forms of arguments: lists of substitutions, and lists of entities."""

from __future__ import annotations

import inspect

from launch.launch_description_entity import LaunchDescriptionEntity
from launch.substitution import Substitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List

    from launch.some_entities_type import SomeEntitiesType
    from launch.some_substitutions_type import SomeSubstitutionsType


def _substitution(part: Any) -> Substitution:
    from launch.substitutions.text_substitution import TextSubstitution
    if isinstance(part, Substitution):
        return part
    if isinstance(part, str):
        return TextSubstitution(text=part)
    raise TypeError(
        f"Failed to normalize given item of type '{type(part)}', when only 'str' or "
        "'launch.Substitution' were expected.")


def normalize_to_list_of_substitutions(subs: SomeSubstitutionsType) -> List[Substitution]:
    """
    Return a list of substitutions; text becomes a TextSubstitution.

    :raises TypeError: if something else is in it.
    """
    if isinstance(subs, (str, Substitution)):
        return [_substitution(subs)]
    if inspect.isclass(subs) and issubclass(subs, Substitution):
        return [subs]
    return [_substitution(part) for part in subs]


def normalize_to_list_of_entities(
    entities: Iterable[SomeEntitiesType],
) -> List[LaunchDescriptionEntity]:
    """Return a flat list of entities."""
    flat: List[LaunchDescriptionEntity] = []
    for entity in entities:
        if isinstance(entity, LaunchDescriptionEntity):
            flat.append(entity)
        else:
            flat.extend(entity)
    return flat
