"""Parameters that replace the QoS policies of publishers and subscriptions."""

from __future__ import annotations

from pteros import _native
from rcl_interfaces.msg import SetParametersResult
from rclpy._imported_names import getter_of
from rclpy.publisher import Publisher
from rclpy.qos import QoSPolicyKind, QoSProfile
from rclpy.topic_endpoint_info import _with_durations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Optional, Union

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
    is_publisher = issubclass(entity_type, Publisher)
    policies = [kind.name.lower() for kind in options.policy_kinds]
    values = _with_durations(node._parameter_store.override_qos(
        node, topic_name, (is_publisher, options.entity_id or ''), policies,
        _native.rmw_qos_profile_t(*qos._native())))
    for policy in policies:
        if policy in values:
            setattr(qos, policy, values[policy])
    if options.callback is not None:
        result = options.callback(qos)
        if not result.successful:
            entity = 'publisher' if is_publisher else 'subscription'
            raise InvalidQosOverridesError(
                f'{entity} of topic {topic_name!r}: the QoS overrides are rejected: '
                f'{result.reason}')


def _get_qos_policy_parameter(qos: QoSProfile, policy: QoSPolicyKind) -> Union[str, int, bool]:
    """Return a policy as the value of a parameter."""
    return _native.qos_policy_parameter(
        _native.rmw_qos_profile_t(*qos._native()), policy.name.lower())
