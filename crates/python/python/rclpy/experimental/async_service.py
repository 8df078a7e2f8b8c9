"""Servers of asynchronous nodes."""

from __future__ import annotations

from rclpy.experimental._async_entity import AsyncEntity
from rclpy.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Coroutine, Generator


class _Reply:
    """The response of a coroutine function: awaits it and sends it."""

    def __init__(self, service: Service, coroutine: Coroutine, header: Any) -> None:
        self._service = service
        self._coroutine = coroutine
        self._header = header

    def __await__(self) -> Generator[Any, None, None]:
        response = yield from self._coroutine.__await__()
        self._service.send_response(response, self._header)

    def send(self, value: Any) -> Any:
        """Step the coroutine."""
        return self._coroutine.send(value)

    def close(self) -> None:
        """End the coroutine, also one that has not begun."""
        self._coroutine.close()


class AsyncService(AsyncEntity, Service):
    """Answers requests by a callback, which may be a coroutine function."""

    def _executor_call(self, request: Any, header: Any) -> Any:
        response = self.callback(request, self.srv_type.Response())
        if hasattr(response, '__await__') and hasattr(response, 'send'):
            return _Reply(self, response, header)
        self.send_response(response, header)
        return None
