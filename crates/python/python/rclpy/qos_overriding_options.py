"""Parameters that replace the QoS policies of publishers and subscriptions."""

from __future__ import annotations

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy._imported_names import getter_of
from rclpy.duration import Duration
from rclpy.exceptions import ParameterAlreadyDeclaredException
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSPolicyKind, QoSProfile,
    ReliabilityPolicy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, List, Optional, Union

    from rclpy.node import Node
else:
    __getattr__ = getter_of(__name__)

QosCallbackResult = SetParametersResult
"""What a validation callback returns: ``successful`` and ``reason``."""


class InvalidQosOverridesError(Exception):
    """A validation callback rejected the policies."""


class QoSOverridingOptions:
    """The policies that parameters may replace."""

    def __init__(
        self, policy_kinds: Iterable[QoSPolicyKind], *,
        callback: Optional[Callable[[QoSProfile], QosCallbackResult]] = None,
        entity_id: Optional[str] = None,
    ) -> None:
        """
        Create options.

        :param policy_kinds: The policies.
        :param callback: Accepts or rejects the profile after the replacement.
        :param entity_id: A part of the parameters' names, for several endpoints of one topic.
        """
        self._policy_kinds = policy_kinds
        self._callback = callback
        self._entity_id = entity_id

    @property
    def policy_kinds(self) -> Iterable[QoSPolicyKind]:
        """The policies that parameters may replace."""
        return self._policy_kinds

    @property
    def callback(self) -> Optional[Callable[[QoSProfile], QosCallbackResult]]:
        """The function that accepts or rejects the profile."""
        return self._callback

    @property
    def entity_id(self) -> Optional[str]:
        """The part of the parameters' names that tells endpoints of one topic apart."""
        return self._entity_id

    @classmethod
    def with_default_policies(
        cls, *, callback: Optional[Callable[[QoSProfile], QosCallbackResult]] = None,
        entity_id: Optional[str] = None,
    ) -> QoSOverridingOptions:
        """Create options for history, depth and reliability."""
        return cls(
            (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY),
            callback=callback, entity_id=entity_id)


def _declare_qos_parameters(
    entity_type: Any, node: Node, topic_name: str, qos: QoSProfile,
    options: QoSOverridingOptions,
) -> None:
    """Declare a parameter for each policy and write its value into the profile."""
    entity = 'publisher' if entity_type is Publisher else 'subscription'
    suffix = f'_{options.entity_id}' if options.entity_id else ''
    prefix = f'qos_overrides.{topic_name}.{entity}{suffix}.'
    allowed = _get_allowed_policies(entity_type)
    for kind in options.policy_kinds:
        if kind not in allowed:
            continue
        name = prefix + kind.name.lower()
        descriptor = ParameterDescriptor(
            description=f'{kind.name.lower()} of {topic_name} {entity}', read_only=True)
        try:
            parameter = node.declare_parameter(
                name, _get_qos_policy_parameter(qos, kind), descriptor)
        except ParameterAlreadyDeclaredException:
            parameter = node.get_parameter(name)
        _override_qos_policy_with_param(qos, kind, parameter)
    if options.callback is not None:
        result = options.callback(qos)
        if not result.successful:
            raise InvalidQosOverridesError(
                f"{entity} of topic {topic_name!r}: the QoS overrides are rejected: "
                f'{result.reason}')


def _get_allowed_policies(entity_type: Any) -> List[QoSPolicyKind]:
    allowed = [
        QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DEADLINE, QoSPolicyKind.LIVELINESS,
        QoSPolicyKind.LIVELINESS_LEASE_DURATION, QoSPolicyKind.DURABILITY,
        QoSPolicyKind.AVOID_ROS_NAMESPACE_CONVENTIONS]
    if entity_type is Publisher:
        allowed.append(QoSPolicyKind.LIFESPAN)
    return allowed


_ENUMS = {
    QoSPolicyKind.HISTORY: HistoryPolicy, QoSPolicyKind.RELIABILITY: ReliabilityPolicy,
    QoSPolicyKind.DURABILITY: DurabilityPolicy, QoSPolicyKind.LIVELINESS: LivelinessPolicy,
}
_DURATIONS = (
    QoSPolicyKind.LIFESPAN, QoSPolicyKind.DEADLINE, QoSPolicyKind.LIVELINESS_LEASE_DURATION)


def _get_qos_policy_parameter(qos: QoSProfile, policy: QoSPolicyKind) -> Union[str, int, bool]:
    """Return a policy as the value of a parameter."""
    value = getattr(qos, policy.name.lower())
    if policy in _ENUMS:
        return value.short_key
    if policy in _DURATIONS:
        return value.nanoseconds
    return value


def _override_qos_policy_with_param(
    qos: QoSProfile, policy: QoSPolicyKind, param: Parameter,
) -> None:
    """Write the value of a parameter into a profile."""
    value = param.value
    if policy in _ENUMS:
        try:
            value = _ENUMS[policy].get_from_short_key(value)
        except KeyError:
            raise ValueError(
                f'parameter {param.name!r}: {value!r} is no value of {policy.name.lower()}; use '
                + ', '.join(_ENUMS[policy].short_keys())) from None
    elif policy in _DURATIONS:
        value = Duration(nanoseconds=value)
    setattr(qos, policy.name.lower(), value)
