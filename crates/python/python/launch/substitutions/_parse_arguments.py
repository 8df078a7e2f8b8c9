"""The arguments of substitutions in launch files."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple, Type

    from launch.some_substitutions_type import SomeSubstitutionsType


def parse_arguments(
    name: str, *arguments: str, optional: int = 0, error: Type[Exception] = TypeError,
) -> Any:
    """
    Make the method ``parse`` of a substitution.

    :param name: The substitution's name, for error texts.
    :param arguments: The keyword arguments of its class, in the order of the launch file.
    :param optional: How many may be left out at the end.
    :param error: What is raised for another number of arguments.
    """
    most = len(arguments)

    def parse(cls: Any, data: Sequence[SomeSubstitutionsType]) -> Tuple[Any, Dict[str, Any]]:
        """Return the class and its arguments."""
        if not most - optional <= len(data) <= most:
            counts = ' or '.join(str(count) for count in range(most - optional, most + 1))
            raise error(
                f"{name} substitution doesn't expect arguments" if most == 0 else
                f"{name} substitution expects {counts} argument{'s' * (most > 1)}")
        return cls, dict(zip(arguments, data))

    return classmethod(parse)
