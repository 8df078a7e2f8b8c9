"""Handlers of SIGINT and SIGTERM."""

from __future__ import annotations

from pteros import _native
from rclpy._imported_names import getter_of
from rclpy.guard_condition import GuardCondition
from rclpy.impl.named_enum import NamedEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from rclpy.context import Context
else:
    __getattr__ = getter_of(__name__)


class SignalHandlerOptions(NamedEnum):
    """The signals that shut all contexts down."""

    NO = 0
    SIGINT = 1
    SIGTERM = 2
    ALL = 3


def install_signal_handlers(options: SignalHandlerOptions = SignalHandlerOptions.ALL) -> None:
    """Install handlers, which then call the handlers that were there."""
    _native.install_signal_handlers(int(options))


def get_current_signal_handlers_options() -> SignalHandlerOptions:
    """Return the signals that are handled now."""
    return SignalHandlerOptions(_native.get_current_signal_handlers_options())


def uninstall_signal_handlers() -> None:
    """Put the handlers back that were there before."""
    _native.uninstall_signal_handlers()


class SignalHandlerGuardCondition(GuardCondition):
    """A guard condition that SIGINT and SIGTERM trigger."""

    def __init__(self, context: Optional[Context] = None) -> None:
        super().__init__(callback=None, callback_group=None, context=context)
        _native.register_sigint_guard_condition(self.handle)

    def __del__(self) -> None:
        try:
            self.destroy()
        except AttributeError:
            # The constructor failed.
            pass

    def destroy(self) -> None:
        """Destroy the guard condition; signals no longer trigger it."""
        _native.unregister_sigint_guard_condition(self.handle)
        super().destroy()
