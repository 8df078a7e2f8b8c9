"""Clients of asynchronous nodes."""

from __future__ import annotations

import asyncio

from rclpy.client import Client
from rclpy.experimental._async_entity import AsyncEntity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.task import Future


class AsyncClient(AsyncEntity, Client):
    """Sends requests to a service."""

    async def call(self, request: Any) -> Any:  # type: ignore[override]
        """
        Send a request and wait for its response.

        ``asyncio.timeout`` limits the wait; a request whose wait is cancelled is forgotten.

        :raises TypeError: if the request is not of the service's type.
        :raises RuntimeError: if the client was destroyed.
        :raises CancelledError: if the client is destroyed meanwhile.
        """
        if self._owner is None:
            raise RuntimeError('Calling a destroyed client is forbidden')
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future = loop.create_future()
        sent = self.call_async(request)
        # The response arrives in the thread of the loop, which runs the node.
        sent._add_waker(lambda: _finish(arrived, sent))
        try:
            return await arrived
        finally:
            sent.cancel()

    async def wait_for_service(  # type: ignore[override]
        self, *, check_interval: float = 0.1,
    ) -> None:
        """
        Wait until a server is there; ``asyncio.timeout`` limits the wait.

        :param check_interval: Seconds between two looks.
        """
        while not self.service_is_ready():
            await asyncio.sleep(check_interval)

    def destroy(self) -> None:
        """Destroy the client, and cancel the calls that wait. Once is enough."""
        pending = list(self._pending_requests.values())
        super().destroy()
        for future in pending:
            future.cancel()


def _finish(arrived: asyncio.Future, sent: Future) -> None:
    if arrived.done():
        return
    if sent.cancelled():
        arrived.cancel()
    else:
        arrived.set_result(sent.result())
