"""Calls of services from the loop of a launch."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any, Optional

    from launch.launch_context import LaunchContext
    from rclpy.client import Client

_POLL_PERIOD = 0.02
# The server sees the client's response reader a moment after the client sees the server. A
# response that it writes before is lost, because responses are volatile.
_SETTLING_TIME = 0.2


async def call_service(
    client: Client, request: Any, context: LaunchContext, logger: logging.Logger,
) -> Optional[Any]:
    """
    Wait for a service, call it, and return its response; ``None`` if the launch ends before.

    The node of the client is spun by another thread.
    """
    name = client.srv_name

    def is_abandoned(part: str) -> bool:
        # The end of the launch destroys the node and the client with it.
        if context.is_shutdown:
            logger.warning(f"Abandoning wait for the '{name}' service{part}, due to shutdown.")
        return context.is_shutdown

    if is_abandoned(''):
        return None
    while not client.service_is_ready():
        await asyncio.sleep(_POLL_PERIOD)
        if is_abandoned(''):
            return None
    await asyncio.sleep(_SETTLING_TIME)
    if is_abandoned(''):
        return None
    future = client.call_async(request)
    try:
        while not future.done():
            await asyncio.sleep(_POLL_PERIOD)
            if is_abandoned(' response'):
                return None
    finally:
        if not future.done():
            future.cancel()
    if future.exception() is not None:
        raise future.exception()
    return future.result()
