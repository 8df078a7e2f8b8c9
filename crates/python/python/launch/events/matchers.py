"""Matchers of actions, for events that are for some of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from launch.action import Action


def matches_action(target_action: Action) -> Callable[[Action], bool]:
    """Return a function that says whether an action is this one."""
    return lambda action: action == target_action
