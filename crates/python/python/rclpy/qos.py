"""Quality of service: the policies of publishers and subscriptions, and their presets."""

from __future__ import annotations

import warnings
from enum import Enum, IntEnum

from rclpy._imported_names import getter_of
from rclpy.duration import Duration
from rclpy.impl.named_enum import NamedEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Tuple, Union
else:
    __getattr__ = getter_of(__name__)


class QoSPolicyKind(IntEnum):
    """The kinds of policies, as events and overrides name them."""

    INVALID = 1 << 0
    DURABILITY = 1 << 1
    DEADLINE = 1 << 2
    LIVELINESS = 1 << 3
    RELIABILITY = 1 << 4
    HISTORY = 1 << 5
    LIFESPAN = 1 << 6
    DEPTH = 1 << 7
    LIVELINESS_LEASE_DURATION = 1 << 8
    AVOID_ROS_NAMESPACE_CONVENTIONS = 1 << 9


def qos_policy_name_from_kind(policy_kind: Union[QoSPolicyKind, int]) -> str:
    """Return the name of a policy kind, such as ``'DURABILITY'``."""
    return QoSPolicyKind(policy_kind).name


class InvalidQoSProfileException(Exception):
    """A QoS profile cannot be built from its arguments."""

    def __init__(self, *args: object) -> None:
        Exception.__init__(self, 'Invalid QoSProfile', *args)


class QoSPolicyEnum(IntEnum):
    """Base of the policies' values, which also have short names for command lines."""

    @classmethod
    def short_keys(cls) -> List[str]:
        """Return the short names of all values that a user may choose."""
        return [key.lower() for key in cls.__members__ if not key.startswith('RMW')]

    @classmethod
    def get_from_short_key(cls, name: str) -> int:
        """
        Return the value with a short name, in upper or lower case.

        :raises KeyError: if no value has that name.
        """
        return cls[name.upper()].value

    @property
    def short_key(self) -> str:
        """The short name of the value."""
        return self.name.lower()


class HistoryPolicy(QoSPolicyEnum):
    """How many samples are kept."""

    SYSTEM_DEFAULT = 0
    KEEP_LAST = 1
    KEEP_ALL = 2
    UNKNOWN = 3


class ReliabilityPolicy(QoSPolicyEnum):
    """Whether lost samples are sent again."""

    SYSTEM_DEFAULT = 0
    RELIABLE = 1
    BEST_EFFORT = 2
    UNKNOWN = 3
    BEST_AVAILABLE = 4


class DurabilityPolicy(QoSPolicyEnum):
    """Whether late joiners get earlier samples."""

    SYSTEM_DEFAULT = 0
    TRANSIENT_LOCAL = 1
    VOLATILE = 2
    UNKNOWN = 3
    BEST_AVAILABLE = 4


class LivelinessPolicy(QoSPolicyEnum):
    """How a publisher shows that it is alive."""

    SYSTEM_DEFAULT = 0
    AUTOMATIC = 1
    MANUAL_BY_TOPIC = 3
    UNKNOWN = 4
    BEST_AVAILABLE = 5


QoSHistoryPolicy = HistoryPolicy
QoSReliabilityPolicy = ReliabilityPolicy
QoSDurabilityPolicy = DurabilityPolicy
QoSLivelinessPolicy = LivelinessPolicy


class _DeprecatedAlias:
    """The old long name of a policy's value."""

    def __init__(self, replacement: str, name: str) -> None:
        self._replacement = replacement
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        warnings.warn(
            f'{owner.__name__}.{self._name} is deprecated. '
            f'Use {owner.__name__}.{self._replacement} instead.', stacklevel=2)
        return owner[self._replacement]


def _add_deprecated_aliases(policy: Any, prefix: str) -> None:
    # EnumMeta.__getattr__ is for members; a descriptor on the class bypasses it.
    for name in policy.__members__:
        type.__setattr__(policy, prefix + name, _DeprecatedAlias(name, prefix + name))


_add_deprecated_aliases(HistoryPolicy, 'RMW_QOS_POLICY_HISTORY_')
_add_deprecated_aliases(ReliabilityPolicy, 'RMW_QOS_POLICY_RELIABILITY_')
_add_deprecated_aliases(DurabilityPolicy, 'RMW_QOS_POLICY_DURABILITY_')
_add_deprecated_aliases(LivelinessPolicy, 'RMW_QOS_POLICY_LIVELINESS_')

_UNSPECIFIED = 0
_BEST_AVAILABLE_NS = 9223372036854775806

DeadlineBestAvailable = Duration(nanoseconds=_BEST_AVAILABLE_NS)
"""A deadline that fits whatever the other side has."""
LivelinessLeaseDurationeBestAvailable = Duration(nanoseconds=_BEST_AVAILABLE_NS)
"""A lease that fits whatever the other side has. The spelling is rclpy's."""

_NO_DURATION = Duration()


def _checked(policy: Any, value: Any) -> Any:
    return value if type(value) is policy else policy(value)


def _checked_duration(name: str, value: Any) -> Duration:
    if not isinstance(value, Duration):
        raise AssertionError(f'{name} must be a rclpy.duration.Duration, got {value!r}')
    return value


class QoSProfile:
    """
    The policies of one publisher, subscription, client or service.

    At least ``depth``, or ``history`` other than keep last, is required.
    """

    __slots__ = [
        '_history', '_depth', '_reliability', '_durability', '_lifespan', '_deadline',
        '_liveliness', '_liveliness_lease_duration', '_avoid_ros_namespace_conventions',
    ]

    def __init__(self, **kwargs: Any) -> None:
        """
        Create a profile; policies that are not given have ROS 2's default.

        :param history: A :class:`HistoryPolicy`.
        :param depth: Samples to keep, with keep last.
        :param reliability: A :class:`ReliabilityPolicy`.
        :param durability: A :class:`DurabilityPolicy`.
        :param lifespan: Age at which samples expire, a :class:`Duration`.
        :param deadline: Longest time between samples, a :class:`Duration`.
        :param liveliness: A :class:`LivelinessPolicy`.
        :param liveliness_lease_duration: Time after which a silent publisher is not alive.
        :param avoid_ros_namespace_conventions: Use the topic name on the wire as it is.
        :raises AssertionError: if a keyword does not exist.
        :raises InvalidQoSProfileException: if neither history nor depth is given, or keep last
            is given without a depth.
        """
        unknown = [key for key in kwargs if '_' + key not in self.__slots__]
        if unknown:
            raise AssertionError(
                f"QoSProfile has no policy {', '.join(map(repr, unknown))}; it has "
                + ', '.join(slot[1:] for slot in self.__slots__))
        if 'history' not in kwargs:
            if 'depth' not in kwargs:
                raise InvalidQoSProfileException('History and/or depth settings are required.')
            kwargs['history'] = HistoryPolicy.KEEP_LAST
        self.history = kwargs['history']
        if self._history == HistoryPolicy.KEEP_LAST and 'depth' not in kwargs:
            raise InvalidQoSProfileException('History set to KEEP_LAST without a depth setting.')
        self.depth = kwargs.get('depth', 10)
        self.reliability = kwargs.get('reliability', ReliabilityPolicy.RELIABLE)
        self.durability = kwargs.get('durability', DurabilityPolicy.VOLATILE)
        self.lifespan = kwargs.get('lifespan', _NO_DURATION)
        self.deadline = kwargs.get('deadline', _NO_DURATION)
        self.liveliness = kwargs.get('liveliness', LivelinessPolicy.SYSTEM_DEFAULT)
        self.liveliness_lease_duration = kwargs.get('liveliness_lease_duration', _NO_DURATION)
        self.avoid_ros_namespace_conventions = kwargs.get(
            'avoid_ros_namespace_conventions', False)

    @property
    def history(self) -> HistoryPolicy:
        """How many samples are kept."""
        return self._history

    @history.setter
    def history(self, value: Union[HistoryPolicy, int]) -> None:
        self._history = _checked(HistoryPolicy, value)

    @property
    def reliability(self) -> ReliabilityPolicy:
        """Whether lost samples are sent again."""
        return self._reliability

    @reliability.setter
    def reliability(self, value: Union[ReliabilityPolicy, int]) -> None:
        self._reliability = _checked(ReliabilityPolicy, value)

    @property
    def durability(self) -> DurabilityPolicy:
        """Whether late joiners get earlier samples."""
        return self._durability

    @durability.setter
    def durability(self, value: Union[DurabilityPolicy, int]) -> None:
        self._durability = _checked(DurabilityPolicy, value)

    @property
    def depth(self) -> int:
        """Samples to keep, with keep last."""
        return self._depth

    @depth.setter
    def depth(self, value: int) -> None:
        if not isinstance(value, int):
            raise AssertionError(f'depth must be an int, got {value!r}')
        if self._history == HistoryPolicy.KEEP_LAST and value == 0:
            warnings.warn(
                "A zero depth with KEEP_LAST doesn't make sense; no data could be stored. "
                'This will be interpreted as SYSTEM_DEFAULT', stacklevel=2)
        self._depth = value

    @property
    def lifespan(self) -> Duration:
        """Age at which samples expire; zero stands for never."""
        return self._lifespan

    @lifespan.setter
    def lifespan(self, value: Duration) -> None:
        self._lifespan = _checked_duration('lifespan', value)

    @property
    def deadline(self) -> Duration:
        """Longest time between samples; zero stands for no limit."""
        return self._deadline

    @deadline.setter
    def deadline(self, value: Duration) -> None:
        self._deadline = _checked_duration('deadline', value)

    @property
    def liveliness(self) -> LivelinessPolicy:
        """How a publisher shows that it is alive."""
        return self._liveliness

    @liveliness.setter
    def liveliness(self, value: Union[LivelinessPolicy, int]) -> None:
        self._liveliness = _checked(LivelinessPolicy, value)

    @property
    def liveliness_lease_duration(self) -> Duration:
        """Time after which a silent publisher is not alive; zero stands for no limit."""
        return self._liveliness_lease_duration

    @liveliness_lease_duration.setter
    def liveliness_lease_duration(self, value: Duration) -> None:
        self._liveliness_lease_duration = _checked_duration('liveliness_lease_duration', value)

    @property
    def avoid_ros_namespace_conventions(self) -> bool:
        """Use the topic name on the wire as it is."""
        return self._avoid_ros_namespace_conventions

    @avoid_ros_namespace_conventions.setter
    def avoid_ros_namespace_conventions(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise AssertionError(f'avoid_ros_namespace_conventions must be a bool, got {value!r}')
        self._avoid_ros_namespace_conventions = value

    def get_c_qos_profile(self) -> Any:
        """Return the profile in the implementation's form, as ``rmw_qos_profile_t``."""
        from rclpy.impl.implementation_singleton import rclpy_implementation
        return rclpy_implementation.rmw_qos_profile_t(
            self._history.value, self._depth, self._reliability.value, self._durability.value,
            self._lifespan, self._deadline, self._liveliness.value,
            self._liveliness_lease_duration, self._avoid_ros_namespace_conventions)

    def _native(self) -> Tuple[int, int, int, int, int, int, int, int, bool]:
        """Return the policies as plain numbers, durations in nanoseconds."""
        return (
            int(self._history), self._depth, int(self._reliability), int(self._durability),
            self._lifespan.nanoseconds, self._deadline.nanoseconds, int(self._liveliness),
            self._liveliness_lease_duration.nanoseconds, self._avoid_ros_namespace_conventions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QoSProfile):
            return False
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        values = ', '.join(f'{slot[1:]}={getattr(self, slot)}' for slot in self.__slots__)
        return f'{type(self).__name__}({values})'


def _preset(
    history: int, depth: int, reliability: int, durability: int, liveliness: int = 0,
    deadline: Duration = _NO_DURATION, lease: Duration = _NO_DURATION,
) -> QoSProfile:
    profile = QoSProfile.__new__(QoSProfile)
    profile._history = HistoryPolicy(history)
    profile._depth = depth
    profile._reliability = ReliabilityPolicy(reliability)
    profile._durability = DurabilityPolicy(durability)
    profile._lifespan = _NO_DURATION
    profile._deadline = deadline
    profile._liveliness = LivelinessPolicy(liveliness)
    profile._liveliness_lease_duration = lease
    profile._avoid_ros_namespace_conventions = False
    return profile


qos_profile_unknown = _preset(3, 0, 3, 3, 4)
"""The profile of an endpoint whose policies are not known."""
qos_profile_default = _preset(1, 10, 1, 2)
"""The default of publishers and subscriptions: keep the last 10, reliable, volatile."""
qos_profile_system_default = _preset(0, 0, 0, 0)
"""The defaults of the middleware."""
qos_profile_sensor_data = _preset(1, 5, 2, 2)
"""For sensors: keep the last 5, best effort, volatile."""
qos_profile_services_default = _preset(1, 10, 1, 2)
"""The default of clients and services."""
qos_profile_parameters = _preset(1, 1000, 1, 2)
"""For the parameter services."""
qos_profile_parameter_events = _preset(1, 1000, 1, 2)
"""For the topic of parameter events."""
qos_profile_best_available = _preset(
    1, 10, 4, 4, 5, DeadlineBestAvailable, LivelinessLeaseDurationeBestAvailable)
"""The strictest policies that match the endpoints that are there."""
qos_profile_action_status_default = _preset(1, 1, 1, 1)
"""For the status topic of actions: keep the last, reliable, transient local."""
qos_profile_rosout_default = _preset(1, 1000, 1, 1)
"""For the log messages on ``/rosout``: keep the last 1000 for 10 s, reliable, transient local."""
qos_profile_rosout_default.lifespan = Duration(seconds=10)


class QoSPresetProfiles(Enum):
    """The presets by name."""

    UNKNOWN = qos_profile_unknown
    DEFAULT = qos_profile_default
    SYSTEM_DEFAULT = qos_profile_system_default
    SENSOR_DATA = qos_profile_sensor_data
    SERVICES_DEFAULT = qos_profile_services_default
    PARAMETERS = qos_profile_parameters
    PARAMETER_EVENTS = qos_profile_parameter_events
    ACTION_STATUS_DEFAULT = qos_profile_action_status_default
    BEST_AVAILABLE = qos_profile_best_available

    @classmethod
    def short_keys(cls) -> List[str]:
        """Return the short names of all presets."""
        return [key.lower() for key in cls.__members__ if not key.startswith('RMW')]

    @classmethod
    def get_from_short_key(cls, name: str) -> QoSProfile:
        """
        Return the preset with a short name, in upper or lower case.

        :raises KeyError: if no preset has that name.
        """
        return cls[name.upper()].value


class QoSCompatibility(NamedEnum):
    """Result of :func:`qos_check_compatible`."""

    OK = 0
    WARNING = 1
    ERROR = 2


def qos_check_compatible(
    publisher_qos: QoSProfile, subscription_qos: QoSProfile,
) -> Tuple[QoSCompatibility, str]:
    """
    Compare what a publisher offers with what a subscription requests.

    :returns: the compatibility, and the reasons if it is not ``OK``. A policy whose value is
        left to the middleware gives a warning.
    """
    from pteros import _native
    offered, requested = (
        _native.rmw_qos_profile_t(*qos._native()) for qos in (publisher_qos, subscription_qos))
    compatibility, reason = _native.qos_check_compatible(offered, requested)
    return QoSCompatibility(compatibility), reason
