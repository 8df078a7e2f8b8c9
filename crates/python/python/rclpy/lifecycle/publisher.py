"""Publishers that publish only while their node is active."""

from __future__ import annotations

from rclpy._imported_names import getter_of
from rclpy.lifecycle.managed_entity import SimpleManagedEntity
from rclpy.publisher import Publisher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union
else:
    __getattr__ = getter_of(__name__)


class LifecyclePublisher(SimpleManagedEntity, Publisher):
    """A publisher of a lifecycle node."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        SimpleManagedEntity.__init__(self)
        Publisher.__init__(self, *args, **kwargs)

    @SimpleManagedEntity.when_enabled
    def publish(self, msg: Union[Any, bytes]) -> None:
        """Publish a message if the node is active; otherwise do nothing."""
        Publisher.publish(self, msg)
