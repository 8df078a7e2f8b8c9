"""Entities that follow the transitions of a lifecycle node."""

from __future__ import annotations

from functools import wraps

from rclpy._imported_names import getter_of
from rclpy.impl.named_enum import NamedEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional
else:
    __getattr__ = getter_of(__name__)


class TransitionCallbackReturn(NamedEnum):
    """What a transition callback returns."""

    SUCCESS = 97
    FAILURE = 98
    ERROR = 99

    def to_label(self) -> str:
        """Return the label of the transition that follows."""
        return f'transition_{self.name.lower()}'


# As the class of ROS 2's C extension is called.
TransitionCallbackReturn._shown_as = 'TransitionCallbackReturnType'  # type: ignore[attr-defined]


class ManagedEntity:
    """Base of entities whose methods are called at the transitions of their node."""

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Handle the transition configure from a state."""
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Handle the transition cleanup from a state."""
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Handle the transition shutdown from a state."""
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Handle the transition activate from a state."""
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Handle the transition deactivate from a state."""
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Handle an error of a transition from a state."""
        return TransitionCallbackReturn.SUCCESS


class SimpleManagedEntity(ManagedEntity):
    """An entity that works while its node is active."""

    def __init__(self) -> None:
        self._enabled = False

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Enable the entity."""
        self._enabled = True
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Disable the entity."""
        self._enabled = False
        return TransitionCallbackReturn.SUCCESS

    @property
    def is_activated(self) -> bool:
        """Whether the entity is enabled."""
        return self._enabled

    @staticmethod
    def when_enabled(
        wrapped: Optional[Callable[..., Any]] = None, *,
        when_not_enabled: Optional[Callable[[], Any]] = None,
    ) -> Any:
        """
        Decorate a method that does nothing while the entity is disabled.

        :param when_not_enabled: Called instead of the method.
        """
        def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(method)
            def only_when_enabled(self: SimpleManagedEntity, *args: Any, **kwargs: Any) -> Any:
                if self._enabled:
                    return method(self, *args, **kwargs)
                return when_not_enabled() if when_not_enabled is not None else None
            return only_when_enabled

        return decorate if wrapped is None else decorate(wrapped)
