"""
Methods of the native handles under the names of rclpy's own C extension.

Programs and tests that take by hand call them on ``subscription.handle`` and others.
"""

from __future__ import annotations

from pteros import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def take_message(self: Any, msg_type: Any = None, raw: bool = False) -> Any:
    """Return the oldest message and its info, or ``None``."""
    taken = self.take_raw() if raw else self.take()
    if taken is None:
        return None
    return (bytes(taken[0]) if raw else taken[0]), taken[1].to_dict()


def service_take_request(self: Any, request_type: Any = None) -> Any:
    """Return the oldest request and its header, or two times ``None``."""
    taken = self.take_request()
    return (None, None) if taken is None else taken


def service_send_response(self: Any, response: Any, header: Any) -> None:
    """Send the response to a request."""
    self.send_response(response, header)


_native.Subscription.take_message = take_message  # type: ignore[attr-defined]
_native.Service.service_take_request = service_take_request  # type: ignore[attr-defined]
_native.Service.service_send_response = service_send_response  # type: ignore[attr-defined]
