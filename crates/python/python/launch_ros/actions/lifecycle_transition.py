"""Action: take lifecycle nodes through transitions, one after the other."""

from __future__ import annotations

import functools

import launch.logging
from launch.action import Action
from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handler import EventHandler
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from launch_ros.event_handlers import OnStateTransition
from launch_ros.events import matches_node_name
from launch_ros.events.lifecycle import ChangeState, StateTransition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Union

    from launch.event import Event
    from launch.launch_context import LaunchContext
    from launch.some_substitutions_type import SomeSubstitutionsType


def _states(start: str, goal: str) -> Dict[str, str]:
    return {'start_state': start, 'goal_state': goal}


class LifecycleTransition(Action):
    """
    Takes lifecycle nodes through transitions.

    Each node gets the next transition when it has reached the goal of the one before. An
    error in a node ends its transitions.
    """

    # By the ids of lifecycle_msgs/msg/Transition.
    transition_targets = {
        1: _states('configuring', 'inactive'),
        2: _states('cleaningup', 'unconfigured'),
        3: _states('activating', 'active'),
        4: _states('deactivating', 'inactive'),
        5: _states('shuttingdown', 'finalized'),
        6: _states('shuttingdown', 'finalized'),
        7: _states('shuttingdown', 'finalized'),
    }

    def __init__(
        self,
        *,
        lifecycle_node_names: Iterable[SomeSubstitutionsType],
        transition_ids: Iterable[Union[int, SomeSubstitutionsType]],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        names, ids = list(lifecycle_node_names), list(transition_ids)
        if not ids:
            raise ValueError('No transition_ids provided.')
        if not names:
            raise ValueError('No lifecycle_node_names provided.')
        self.__names = [normalize_to_list_of_substitutions(name) for name in names]
        self.__ids = [
            normalize_to_list_of_substitutions(str(id_) if isinstance(id_, int) else id_)
            for id_ in ids]
        self.__handlers: Dict[str, List[Any]] = {}
        self.__logger = launch.logging.get_logger('launch_ros.actions.lifecycle_transition')

    def _remove_event_handlers(
        self, context: LaunchContext, node_name: str, reason: Optional[str] = None,
    ) -> None:
        if reason is not None:
            self.__logger.info(f"Stopping transitions for {node_name} because '{reason}'")
        for handler in self.__handlers[node_name]:
            try:
                context.unregister_event_handler(handler)
            except ValueError:
                # It has been handled once.
                pass

    def __transition_ids(self, context: LaunchContext) -> List[int]:
        ids = []
        for parts in self.__ids:
            text = perform_substitutions(context, parts)
            try:
                ids.append(int(text))
            except ValueError:
                raise ValueError(
                    f'expected integer for lifecycle transition, got {text}') from None
            if ids[-1] not in self.transition_targets:
                raise ValueError(
                    f'lifecycle transition {text} has no goal; use one of '
                    f"{', '.join(str(each) for each in self.transition_targets)}")
        return ids

    def execute(self, context: LaunchContext) -> List[Action]:
        """Return the actions that begin, and that go on after each transition."""
        ids = self.__transition_ids(context)
        actions: List[Action] = []
        for parts in self.__names:
            name = perform_substitutions(context, parts)
            if context.plan is not None:
                names = ', '.join(ChangeState.valid_transitions[id_] for id_ in ids)
                context.plan.add(
                    'event', f'change the state of {name}: {names}', node=name, transitions=ids)
                continue
            actions.extend(self.__actions_of(name, ids, context))
        return actions

    def __actions_of(
        self, name: str, ids: List[int], context: LaunchContext,
    ) -> List[Action]:
        emits = [
            EmitEvent(event=ChangeState(
                lifecycle_node_matcher=matches_node_name(name), transition_id=id_))
            for id_ in ids]
        remove = functools.partial(self._remove_event_handlers, node_name=name)
        followers: List[Action] = [*emits[1:], OpaqueFunction(function=remove)]
        handlers = [
            OnStateTransition(
                matcher=match_node_name_start_goal(name, **self.transition_targets[id_]),
                entities=[follower], handle_once=True)
            for id_, follower in zip(ids, followers)]
        on_error = EventHandler(
            matcher=match_node_name_goal(name, 'errorprocessing'),
            entities=[OpaqueFunction(function=functools.partial(
                remove, reason='error occurred during transitions'))],
            handle_once=True)
        context.register_event_handler(on_error)
        self.__handlers[name] = [*handlers, on_error]
        return [*(RegisterEventHandler(each) for each in handlers), emits[0]]


def match_node_name_start_goal(
    node_name: str, start_state: str, goal_state: str,
) -> Callable[[Event], bool]:
    """Return a function that says whether a node has gone from a state to another one."""
    reaches = match_node_name_goal(node_name, goal_state)
    return lambda event: reaches(event) and event.start_state == start_state


def match_node_name_goal(node_name: str, goal_state: str) -> Callable[[Event], bool]:
    """Return a function that says whether a node has reached a state."""
    is_node = matches_node_name(node_name)
    return lambda event: (
        isinstance(event, StateTransition) and is_node(event.action)
        and event.goal_state == goal_state)
