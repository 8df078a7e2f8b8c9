//! Endpoint matching: whether a local and a remote endpoint match (RTPS 2.5
//! §8.5.2).
//!
//! They need the same topic, type compatibility (the same type name, and the same
//! RIHS01 type hash where both announce one), and QoS compatibility. The policies that
//! the writer offers must cover those that the reader requests (request/offered, DDS
//! 1.4 §2.2.3).
//!
//! The match table stores the last outcome of each pair, so that each change is
//! reported once. It holds only pairs on one topic: a remote endpoint on another
//! topic costs nothing here.
//!
//! Two endpoints of the same participant are never matched here. The runtime
//! decides local delivery with the same [`evaluate_match`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, has_same_protection};
use crate::id::{EntityId, Guid};
use crate::qos::{PolicyId, incompatibilities};
use crate::user_data::has_other_version;

/// The outcome of matching two endpoints on one topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MatchOutcome {
    /// They match.
    Matched,
    /// The writer offers less than the reader requests, in these policies.
    IncompatibleQos(Vec<PolicyId>),
    /// Same topic name, another type name; or another version of the type
    /// ([`has_other_version`]).
    InconsistentType,
    /// No partition in common. This is no error in DDS, so it is never reported.
    NoCommonPartition,
    /// Their DDS Security protection differs (DDS Security 1.1 §9.4.2).
    DifferentProtection,
}

impl MatchOutcome {
    /// Whether other stacks may match the pair all the same: they do not compare type
    /// hashes, or these policies (Fast DDS compares neither PRESENTATION,
    /// DESTINATION_ORDER nor LATENCY_BUDGET; representations are judged variously). All
    /// compare the other policies, so one of those makes them refuse, too. Protection is
    /// left out: an answer would pass by it.
    pub fn is_rule_of_ours(&self) -> bool {
        match self {
            Self::InconsistentType => true,
            Self::IncompatibleQos(policies) => policies.iter().all(|policy| {
                matches!(
                    policy,
                    PolicyId::Presentation
                        | PolicyId::DestinationOrder
                        | PolicyId::LatencyBudget
                        | PolicyId::DataRepresentation
                )
            }),
            Self::Matched | Self::NoCommonPartition | Self::DifferentProtection => false,
        }
    }
}

/// Whether other stacks may take a pair for matched that was refused here. All compare the
/// names of types.
pub(crate) fn is_unseen_refusal(
    local: &EndpointData,
    remote: &EndpointData,
    outcome: &MatchOutcome,
) -> bool {
    outcome.is_rule_of_ours() && local.type_name == remote.type_name
}

/// Matches a writer and a reader on the same topic. PARTITION comes first, because
/// endpoints of different partitions are separated on purpose.
pub fn evaluate_match(writer: &EndpointData, reader: &EndpointData) -> MatchOutcome {
    let policies = incompatibilities(&writer.qos, &reader.qos);
    if policies.contains(&PolicyId::Partition) {
        return MatchOutcome::NoCommonPartition;
    }
    if !has_same_protection(writer, reader) {
        return MatchOutcome::DifferentProtection;
    }
    if writer.type_name != reader.type_name || announce_other_versions(writer, reader) {
        return MatchOutcome::InconsistentType;
    }
    if !policies.is_empty() {
        return MatchOutcome::IncompatibleQos(policies);
    }
    MatchOutcome::Matched
}

/// Whether the type hashes show two versions. Those of a service's topics do not:
/// rmw_fastrtps (Jazzy) announces the hashes of request and response there, we and
/// others that of the service.
pub fn announce_other_versions(writer: &EndpointData, reader: &EndpointData) -> bool {
    !is_service_topic(&writer.topic)
        && has_other_version(&writer.qos.user_data, &reader.qos.user_data)
}

/// Whether a topic, given by its wire name, carries the requests or the replies of a
/// service of ROS.
pub fn is_service_topic(topic: &str) -> bool {
    topic.starts_with("rq/") || topic.starts_with("rr/")
}

/// The last outcome of each pair of a local and a remote endpoint on one topic.
/// Bounded by local endpoints × remote endpoints of the same topic, both of which
/// the participant limits.
#[derive(Default)]
pub(crate) struct MatchTable {
    outcomes: BTreeMap<(Guid, Guid), MatchOutcome>,
}

impl MatchTable {
    /// Stores an outcome. Returns the previous one if it differs (`Some(None)` when
    /// there was none), or `None` without a change.
    pub(crate) fn record(
        &mut self,
        local: Guid,
        remote: Guid,
        outcome: &MatchOutcome,
    ) -> Option<Option<MatchOutcome>> {
        if self.outcomes.get(&(local, remote)) == Some(outcome) {
            return None;
        }
        Some(self.outcomes.insert((local, remote), outcome.clone()))
    }

    /// The outcome of one pair.
    pub(crate) fn find(&self, local: Guid, remote: Guid) -> Option<&MatchOutcome> {
        self.outcomes.get(&(local, remote))
    }

    /// Removes one pair; true if it matched.
    pub(crate) fn remove(&mut self, local: Guid, remote: Guid) -> bool {
        self.outcomes.remove(&(local, remote)) == Some(MatchOutcome::Matched)
    }

    /// All pairs of one local endpoint.
    pub(crate) fn of_local(&self, local: Guid) -> impl Iterator<Item = (Guid, &MatchOutcome)> {
        let last = Guid {
            prefix: crate::id::GuidPrefix([0xff; 12]),
            entity: EntityId::from_bytes([0xff; 4]),
        };
        self.outcomes
            .range((local, Guid::UNKNOWN)..=(local, last))
            .map(|((_, remote), outcome)| (*remote, outcome))
    }

    /// Removes all pairs of one local endpoint. Returns the remote endpoints it
    /// matched.
    pub(crate) fn remove_local(&mut self, local: Guid) -> Vec<Guid> {
        let all: Vec<Guid> = self.of_local(local).map(|(remote, _)| remote).collect();
        all.into_iter()
            .filter(|remote| self.remove(local, *remote))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::GuidPrefix;
    use crate::qos::{EndpointQos, Reliability};

    fn endpoint(kind: u8, type_name: &str, qos: EndpointQos) -> EndpointData {
        let guid = GuidPrefix([1; 12]).with(EntityId::new([0, 0, 1], kind));
        EndpointData::new(guid, "rt/a", type_name, qos)
    }

    #[test]
    fn another_version_of_the_type_does_not_match() {
        let with = |kind, user_data: &str| {
            let qos = EndpointQos {
                user_data: user_data.into(),
                ..EndpointQos::default()
            };
            endpoint(kind, "T", qos)
        };
        let hash = |digit: &str| alloc::format!("typehash=RIHS01_{};", digit.repeat(64));
        let outcome = |offered: &str, requested: &str| {
            let writer = with(EntityId::KIND_WRITER_NO_KEY, offered);
            evaluate_match(&writer, &with(EntityId::KIND_READER_NO_KEY, requested))
        };
        let (one, other) = (hash("1"), hash("2"));
        assert_eq!(outcome(&one, &other), MatchOutcome::InconsistentType);
        let service = alloc::format!("serviceid= 1.2.3;{other}");
        assert_eq!(outcome(&one, &service), MatchOutcome::InconsistentType);
        let raw = alloc::format!("{other}{}", crate::user_data::ANY_TYPE_HASH);
        for (offered, requested) in [
            (&one, &one),
            (&one, &";".into()),
            (&"".into(), &one),
            (&one, &raw),
        ] {
            assert_eq!(outcome(offered, requested), MatchOutcome::Matched);
        }
        // Hashes of services and of their parts are not comparable.
        for topic in ["rq/addRequest", "rr/addReply"] {
            let on_topic = |kind, user_data: &str| EndpointData {
                topic: topic.into(),
                ..with(kind, user_data)
            };
            let writer = on_topic(EntityId::KIND_WRITER_NO_KEY, &one);
            let reader = on_topic(EntityId::KIND_READER_NO_KEY, &other);
            assert_eq!(evaluate_match(&writer, &reader), MatchOutcome::Matched);
        }
    }

    #[test]
    fn partition_mismatch_comes_before_type_mismatch_and_that_before_qos() {
        let weak = EndpointQos {
            reliability: Reliability::BestEffort,
            ..EndpointQos::default()
        };
        let elsewhere = EndpointQos {
            partition: alloc::vec!["elsewhere".into()],
            ..weak.clone()
        };
        let reader = endpoint(EntityId::KIND_READER_NO_KEY, "T", EndpointQos::default());
        let writer =
            |name, qos: &EndpointQos| endpoint(EntityId::KIND_WRITER_NO_KEY, name, qos.clone());
        assert_eq!(
            evaluate_match(&writer("U", &elsewhere), &reader),
            MatchOutcome::NoCommonPartition
        );
        assert_eq!(
            evaluate_match(&writer("U", &weak), &reader),
            MatchOutcome::InconsistentType
        );
        assert_eq!(
            evaluate_match(&writer("T", &weak), &reader),
            MatchOutcome::IncompatibleQos(alloc::vec![PolicyId::Reliability])
        );
        assert_eq!(
            evaluate_match(&writer("T", &EndpointQos::default()), &reader),
            MatchOutcome::Matched
        );
    }
}
