//! Whether a local and a remote endpoint belong together: same topic, same
//! type name, and what the writer offers covers what the reader requests
//! (DDS 1.4 §2.2.3, the request/offered table; RTPS 2.5 §8.5.2).
//!
//! The table of pairs remembers the last verdict, so that each change is told
//! once. Only pairs on one topic name are kept: a remote endpoint that no local
//! one shares a topic with costs nothing here.
//!
//! Two endpoints of the same participant are never paired here. Local delivery
//! is decided by the layer above with the same [`judge`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, protects_alike};
use crate::id::{EntityId, Guid};
use crate::qos::{PolicyId, incompatibilities};

/// How two endpoints on one topic stand to each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Data flows.
    Matched,
    /// The writer offers less than the reader requests, in these policies.
    Incompatible(Vec<PolicyId>),
    /// Same topic name, another type name.
    InconsistentType,
    /// No partition in common. Not an error in DDS, so never reported.
    OtherPartition,
    /// They protect what they say in different ways (DDS Security 1.1 §9.4.2).
    OtherProtection,
}

/// Judges a writer and a reader on the same topic. Partition is looked at
/// first, because endpoints of different partitions are meant not to meet.
pub fn judge(writer: &EndpointData, reader: &EndpointData) -> Verdict {
    let policies = incompatibilities(&writer.qos, &reader.qos);
    if policies.contains(&PolicyId::Partition) {
        return Verdict::OtherPartition;
    }
    if !protects_alike(writer, reader) {
        return Verdict::OtherProtection;
    }
    if writer.type_name != reader.type_name {
        return Verdict::InconsistentType;
    }
    if !policies.is_empty() {
        return Verdict::Incompatible(policies);
    }
    Verdict::Matched
}

/// The last verdict of each pair of a local and a remote endpoint that share a
/// topic. Bounded by local endpoints × remote endpoints of the same topic, both
/// of which the participant limits.
#[derive(Default)]
pub(crate) struct Pairs {
    verdicts: BTreeMap<(Guid, Guid), Verdict>,
}

impl Pairs {
    /// Notes a verdict. Returns the previous one if it differs (`Some(None)`
    /// when there was none), or `None` when nothing changed.
    pub(crate) fn note(
        &mut self,
        local: Guid,
        remote: Guid,
        verdict: &Verdict,
    ) -> Option<Option<Verdict>> {
        if self.verdicts.get(&(local, remote)) == Some(verdict) {
            return None;
        }
        Some(self.verdicts.insert((local, remote), verdict.clone()))
    }

    /// Forgets one pair; true if data flowed between the two.
    pub(crate) fn forget(&mut self, local: Guid, remote: Guid) -> bool {
        self.verdicts.remove(&(local, remote)) == Some(Verdict::Matched)
    }

    /// All pairs of one local endpoint.
    pub(crate) fn of_local(&self, local: Guid) -> impl Iterator<Item = (Guid, &Verdict)> {
        let last = Guid {
            prefix: crate::id::GuidPrefix([0xff; 12]),
            entity: EntityId::from_bytes([0xff; 4]),
        };
        self.verdicts
            .range((local, Guid::UNKNOWN)..=(local, last))
            .map(|((_, remote), verdict)| (*remote, verdict))
    }

    /// Forgets all pairs of one local endpoint; the remote ones that it was
    /// matched with.
    pub(crate) fn forget_local(&mut self, local: Guid) -> Vec<Guid> {
        let all: Vec<Guid> = self.of_local(local).map(|(remote, _)| remote).collect();
        all.into_iter()
            .filter(|remote| self.forget(local, *remote))
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
    fn partitions_hide_everything_else_and_types_hide_policies() {
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
            judge(&writer("U", &elsewhere), &reader),
            Verdict::OtherPartition
        );
        assert_eq!(
            judge(&writer("U", &weak), &reader),
            Verdict::InconsistentType
        );
        assert_eq!(
            judge(&writer("T", &weak), &reader),
            Verdict::Incompatible(alloc::vec![PolicyId::Reliability])
        );
        assert_eq!(
            judge(&writer("T", &EndpointQos::default()), &reader),
            Verdict::Matched
        );
    }
}
