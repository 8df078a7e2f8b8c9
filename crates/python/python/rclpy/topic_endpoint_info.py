"""Publishers and subscriptions of the graph."""

from __future__ import annotations

from enum import IntEnum

from rclpy._imported_names import getter_of
from rclpy.qos import QoSProfile, qos_profile_unknown
from rclpy.type_hash import TypeHash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List
else:
    __getattr__ = getter_of(__name__)


class TopicEndpointTypeEnum(IntEnum):
    """The kinds of endpoints."""

    INVALID = 0
    PUBLISHER = 1
    SUBSCRIPTION = 2


def _checked(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise AssertionError(f'{name} must be of type {kind.__name__}, got {value!r}')
    return value


class TopicEndpointInfo:
    """One publisher or subscription of a topic."""

    __slots__ = [
        '_node_name', '_node_namespace', '_topic_type', '_topic_type_hash', '_endpoint_type',
        '_endpoint_gid', '_qos_profile',
    ]

    def __init__(self, **kwargs: Any) -> None:
        unknown = [key for key in kwargs if '_' + key not in self.__slots__]
        if unknown:
            raise AssertionError(f'TopicEndpointInfo has no attribute {unknown[0]!r}')
        self.node_name = kwargs.get('node_name', '')
        self.node_namespace = kwargs.get('node_namespace', '')
        self.topic_type = kwargs.get('topic_type', '')
        self.topic_type_hash = kwargs.get('topic_type_hash', TypeHash())
        self.endpoint_type = kwargs.get('endpoint_type', TopicEndpointTypeEnum.INVALID)
        self.endpoint_gid = kwargs.get('endpoint_gid', [])
        self.qos_profile = kwargs.get('qos_profile', qos_profile_unknown)

    @property
    def node_name(self) -> str:
        """Name of the endpoint's node."""
        return self._node_name

    @node_name.setter
    def node_name(self, value: str) -> None:
        self._node_name = _checked('node_name', value, str)

    @property
    def node_namespace(self) -> str:
        """Namespace of the endpoint's node."""
        return self._node_namespace

    @node_namespace.setter
    def node_namespace(self, value: str) -> None:
        self._node_namespace = _checked('node_namespace', value, str)

    @property
    def topic_type(self) -> str:
        """Name of the type, such as ``std_msgs/msg/String``."""
        return self._topic_type

    @topic_type.setter
    def topic_type(self, value: str) -> None:
        self._topic_type = _checked('topic_type', value, str)

    @property
    def topic_type_hash(self) -> TypeHash:
        """Hash of the type."""
        return self._topic_type_hash

    @topic_type_hash.setter
    def topic_type_hash(self, value: Any) -> None:
        if isinstance(value, dict):
            value = TypeHash(**value)
        self._topic_type_hash = _checked('topic_type_hash', value, TypeHash)

    @property
    def endpoint_type(self) -> TopicEndpointTypeEnum:
        """Whether it is a publisher or a subscription."""
        return self._endpoint_type

    @endpoint_type.setter
    def endpoint_type(self, value: Any) -> None:
        if isinstance(value, int):
            value = TopicEndpointTypeEnum(value)
        self._endpoint_type = _checked('endpoint_type', value, TopicEndpointTypeEnum)

    @property
    def endpoint_gid(self) -> List[int]:
        """The 16 bytes that name the endpoint in the graph."""
        return self._endpoint_gid

    @endpoint_gid.setter
    def endpoint_gid(self, value: List[int]) -> None:
        if not all(isinstance(element, int) for element in value):
            raise AssertionError(f'endpoint_gid must be a list of int, got {value!r}')
        self._endpoint_gid = value

    @property
    def qos_profile(self) -> QoSProfile:
        """The policies of the endpoint."""
        return self._qos_profile

    @qos_profile.setter
    def qos_profile(self, value: Any) -> None:
        if isinstance(value, dict):
            value = QoSProfile(**_with_durations(value))
        self._qos_profile = _checked('qos_profile', value, QoSProfile)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicEndpointInfo):
            return False
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        gid = '.'.join(format(byte, '02x') for byte in self.endpoint_gid)
        qos = self.qos_profile
        history = qos.history.name + (f' ({qos.depth})' if qos.history.name == 'KEEP_LAST' else '')
        return '\n'.join([
            f'Node name: {self.node_name}',
            f'Node namespace: {self.node_namespace}',
            f'Topic type: {self.topic_type}',
            f'Topic type hash: {self.topic_type_hash}',
            f'Endpoint type: {self.endpoint_type.name}',
            f'GID: {gid}',
            'QoS profile:',
            f'  Reliability: {qos.reliability.name}',
            f'  History (Depth): {history}',
            f'  Durability: {qos.durability.name}',
            f'  Lifespan: {qos.lifespan}',
            f'  Deadline: {qos.deadline}',
            f'  Liveliness: {qos.liveliness.name}',
            f'  Liveliness lease duration: {qos.liveliness_lease_duration}',
        ])


def _with_durations(values: Any) -> Any:
    from rclpy.duration import Duration
    return {
        key: Duration(nanoseconds=value)
        if key in ('lifespan', 'deadline', 'liveliness_lease_duration')
        and not isinstance(value, Duration) else value
        for key, value in values.items()}
