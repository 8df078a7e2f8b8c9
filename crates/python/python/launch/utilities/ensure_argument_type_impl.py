"""Check of an argument's type."""

from __future__ import annotations

import collections.abc
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Optional, Union


def _error(
    caller: Optional[str], name: str, expected: Iterable[Any], argument: Any,
) -> TypeError:
    start = 'Expected' if caller is None else f"'{caller}' expected"
    types = ', '.join(str(each) for each in expected)
    return TypeError(
        f"{start} '{name}' to be one of [{types}], but got '{argument}' of type "
        f"'{type(argument)}'")


def _is_instance(argument: Any, expected: Any) -> bool:
    if isinstance(argument, expected):
        return True
    # A mock has another __class__ than its type.
    return inspect.isclass(expected) and issubclass(argument.__class__, expected)


def ensure_argument_type(
    argument: Any,
    types: Union[type, Iterable[type]],
    argument_name: str,
    caller: Optional[str] = None,
) -> None:
    """
    Check that the argument is an instance of one of the types.

    :raises TypeError: if it is not.
    """
    own = 'ensure_argument_type()'
    if not isinstance(types, (type, collections.abc.Iterable)):
        raise _error(own, 'types', ['type', 'collections.abc.Iterable of type'], types)
    if not isinstance(argument_name, str):
        raise _error(own, 'argument_name', ['str'], argument_name)
    if caller is not None and not isinstance(caller, str):
        raise _error(own, 'caller', ['str', 'None'], caller)
    expected = list(types) if isinstance(types, collections.abc.Iterable) else [types]
    if not any(_is_instance(argument, each) for each in expected):
        raise _error(caller, argument_name, expected, argument)
