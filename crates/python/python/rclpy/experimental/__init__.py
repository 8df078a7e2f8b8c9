"""
Executors and nodes that later releases of rclpy have here; they may change with those.

The classes for asyncio need Python 3.11. They are imported when they are first used.
"""

import sys

from rclpy.experimental.events_executor import EventsExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rclpy.experimental.async_client import AsyncClient
    from rclpy.experimental.async_clock import AsyncClock
    from rclpy.experimental.async_node import AsyncNode
    from rclpy.experimental.async_publisher import AsyncPublisher
    from rclpy.experimental.async_service import AsyncService
    from rclpy.experimental.async_subscription import AsyncSubscription
    from rclpy.experimental.async_timer import AsyncTimer

__all__ = ['EventsExecutor']

_MODULES = {
    'AsyncClient': 'async_client', 'AsyncClock': 'async_clock', 'AsyncNode': 'async_node',
    'AsyncPublisher': 'async_publisher', 'AsyncService': 'async_service',
    'AsyncSubscription': 'async_subscription', 'AsyncTimer': 'async_timer'}

if sys.version_info >= (3, 11):
    __all__ += list(_MODULES)


def __getattr__(name: str) -> 'Any':
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if sys.version_info < (3, 11):
        raise AttributeError(f'{name} needs Python 3.11: asyncio has no TaskGroup before')
    import importlib
    cls = getattr(importlib.import_module(f'{__name__}.{_MODULES[name]}'), name)
    globals()[name] = cls
    return cls
