"""Names of actions and substitutions in launch files."""

from __future__ import annotations

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Optional

    from launch.action import Action
    from launch.frontend.entity import Entity
    from launch.frontend.parser import Parser
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution

action_parse_methods: Dict[str, Callable[..., Any]] = {}
substitution_parse_methods: Dict[str, Callable[..., Any]] = {}


def instantiate_action(entity: Entity, parser: Parser) -> Action:
    """
    Return the action of an element.

    :raises RuntimeError: if no action has the name.
    """
    parse = action_parse_methods.get(entity.type_name)
    if parse is None:
        raise RuntimeError(f'Unrecognized entity of the type: {entity.type_name}')
    action_type, kwargs = parse(entity, parser)
    return action_type(**kwargs)


def instantiate_substitution(
    type_name: str, args: Optional[Iterable[SomeSubstitutionsType]] = None,
) -> Substitution:
    """
    Return the substitution of ``$(type_name args)``.

    :raises RuntimeError: if no substitution has the name.
    """
    parse = substitution_parse_methods.get(type_name)
    if parse is None:
        raise RuntimeError(f'Unknown substitution: {type_name}')
    substitution_type, kwargs = parse([] if args is None else args)
    if 'args' in kwargs:
        return substitution_type(*kwargs.pop('args'), **kwargs)
    return substitution_type(**kwargs)


def _parse_method(exposed: Any, kind: str, name: str) -> Callable[..., Any]:
    if inspect.isclass(exposed):
        if inspect.ismethod(getattr(exposed, 'parse', None)):
            return exposed.parse
        raise RuntimeError(
            "Did not find a class method called 'parse' in the class being decorated.")
    if inspect.isfunction(exposed):
        return exposed
    raise RuntimeError(
        f'Exposed {kind} parser for {name} is not a callable or a class containing a parse '
        'method')


def _checks_completeness(parse: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(parse)
    def parse_completely(entity: Entity, parser: Parser) -> Any:
        result = parse(entity, parser)
        entity.assert_entity_completely_parsed()
        return result

    return parse_completely


def __expose_impl(
    name: str, methods: Dict[str, Callable[..., Any]], kind: str,
) -> Callable[[Any], Any]:
    def decorate(exposed: Any) -> Any:
        parse = _parse_method(exposed, kind, name)
        known = methods.get(name)
        if known is not None and getattr(known, '__wrapped__', known) != parse:
            raise RuntimeError(f'Two {kind} parsing methods exposed with the same name: [{name}].')
        methods[name] = _checks_completeness(parse) if kind == 'action' else parse
        return exposed

    return decorate


def expose_substitution(name: str) -> Callable[[Any], Any]:
    """
    Give a substitution class, or a function that parses one, a name in launch files.

    The class has a class method ``parse(arguments)``, which returns a class and keyword
    arguments.
    """
    return __expose_impl(name, substitution_parse_methods, 'substitution')


def expose_action(name: str) -> Callable[[Any], Any]:
    """
    Give an action class, or a function that parses one, a name in launch files.

    The class has a class method ``parse(entity, parser)``, which returns a class and keyword
    arguments.
    """
    return __expose_impl(name, action_parse_methods, 'action')
