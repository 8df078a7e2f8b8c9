//! Changeable and immutable QoS policies of an endpoint (DDS 1.4 §2.2.3, column
//! "changeable"; XTypes 1.3 §7.6.3.1 for the representation).

use alloc::vec::Vec;

use crate::qos::EndpointQos;

impl EndpointQos {
    /// The names of immutable policies that differ in `other`; empty when the
    /// endpoint may change to `other`.
    pub fn immutable_differences(&self, other: &EndpointQos) -> Vec<&'static str> {
        let (a, b) = (self, other);
        let table = [
            (
                "RELIABILITY",
                a.reliability == b.reliability && a.max_blocking_time == b.max_blocking_time,
            ),
            ("DURABILITY", a.durability == b.durability),
            ("HISTORY", a.history == b.history),
            ("RESOURCE_LIMITS", a.resource_limits == b.resource_limits),
            (
                "LIVELINESS",
                a.liveliness == b.liveliness && a.lease_duration == b.lease_duration,
            ),
            (
                "DESTINATION_ORDER",
                a.destination_order == b.destination_order,
            ),
            ("OWNERSHIP", a.ownership == b.ownership),
            ("PRESENTATION", a.presentation == b.presentation),
            (
                "DURABILITY_SERVICE",
                a.durability_service == b.durability_service,
            ),
            ("DATA_REPRESENTATION", a.representation == b.representation),
        ];
        let differing = table.iter().filter(|(_, same)| !same);
        differing.map(|(name, _)| *name).collect()
    }

    /// Whether the change to `other` of a remote endpoint ends its matches. Then a
    /// policy that both ends agreed on has changed, although it is immutable.
    pub(crate) fn breaks_match(&self, other: &EndpointQos) -> bool {
        let agreed = |qos: &EndpointQos| {
            (
                (qos.reliability, qos.durability, qos.liveliness),
                (qos.lease_duration, qos.destination_order, qos.ownership),
                (qos.presentation, qos.representation.first().copied()),
            )
        };
        agreed(self) != agreed(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{Durability, History, XCDR2};
    use crate::time::Duration;

    #[test]
    fn immutable_policies_that_differ_are_named_and_changeable_ones_are_not() {
        let before = EndpointQos::default();
        let changeable = EndpointQos {
            deadline: Duration::from_millis(7),
            lifespan: Duration::from_millis(7),
            latency_budget: Duration::from_millis(7),
            ownership_strength: 7,
            partition: alloc::vec!["a".into()],
            time_based_filter: Duration::from_millis(7),
            transport_priority: 7,
            user_data: alloc::vec![7],
            topic_data: alloc::vec![7],
            group_data: alloc::vec![7],
            ..before.clone()
        };
        assert!(before.immutable_differences(&changeable).is_empty());
        assert!(!before.breaks_match(&changeable));
        let fixed = EndpointQos {
            durability: Durability::TransientLocal,
            history: History::KeepAll,
            max_blocking_time: Duration::ZERO,
            representation: alloc::vec![XCDR2],
            ..changeable
        };
        assert_eq!(
            before.immutable_differences(&fixed),
            [
                "RELIABILITY",
                "DURABILITY",
                "HISTORY",
                "DATA_REPRESENTATION"
            ]
        );
        assert!(before.breaks_match(&fixed));
    }
}
