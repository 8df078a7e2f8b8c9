//! What endpoints announce beside their names, kept once for all that announce
//! the same.
//!
//! A graph has some dozens of types and some presets of policies, and a thousand
//! endpoints. They differ in their GUID, their topic and, where a stack puts
//! numbers there, in a part of USER_DATA (rmw_cyclonedds and we mark with it
//! which two endpoints of a service belong together). All the rest is a [`Kind`].

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::discovery::data::EndpointData;
use crate::id::Guid;
use crate::shared_qos::SharedQos;

/// What many endpoints have in common.
#[derive(PartialEq)]
pub(super) struct Kind {
    /// Without GUID, topic, locators and USER_DATA.
    pub(super) bare: EndpointData,
    /// The policies with the USER_DATA of whoever was first: others say what
    /// differs from it.
    pub(super) qos: SharedQos,
}

/// All kinds that endpoints are of.
#[derive(Default)]
pub(super) struct Kinds {
    /// One for each hash. Who has the hash of another keeps a kind of its own.
    by_hash: BTreeMap<u64, Arc<Kind>>,
    /// At so many, those that no endpoint is of any more go.
    sweep_at: usize,
}

/// Below this there is nothing to gain.
const SWEEP_AT_LEAST: usize = 64;

impl Kinds {
    /// The kind of an endpoint.
    pub(super) fn of(&mut self, data: &EndpointData) -> Arc<Kind> {
        let mut bare = EndpointData {
            guid: Guid::UNKNOWN,
            topic: String::new(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            ..data.clone()
        };
        bare.qos.user_data = Vec::new();
        let hash = hash_of(&bare);
        if let Some(known) = self.by_hash.get(&hash)
            && known.bare == bare
        {
            return known.clone();
        }
        let qos = data.qos.clone();
        let kind = Arc::new(Kind { bare, qos });
        self.by_hash.insert(hash, kind.clone());
        if self.by_hash.len() > self.sweep_at.max(SWEEP_AT_LEAST) {
            self.by_hash.retain(|_, kind| Arc::strong_count(kind) > 1);
            self.sweep_at = self.by_hash.len().saturating_mul(2);
        }
        kind
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_hash.len()
    }
}

/// FNV-1a. Whoever finds two things of one hash gains nothing by it but what its
/// own endpoints cost.
pub(super) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
    value.hash(&mut fnv);
    fnv.finish()
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::GuidPrefix;
    use crate::qos::{EndpointQos, History};

    fn endpoint(number: u8, depth: u32) -> EndpointData {
        let guid = GuidPrefix([number; 12]).with(crate::id::EntityId::new([0, 0, 1], 3));
        let history = History::KeepLast(depth);
        let user_data = alloc::vec![number; 9];
        let qos = EndpointQos {
            history,
            user_data,
            ..EndpointQos::default()
        };
        EndpointData::new(guid, &alloc::format!("rt/{number}"), "a_type", qos)
    }

    #[test]
    fn who_differs_in_names_and_user_data_is_of_one_kind_and_who_differs_else_is_not() {
        let mut kinds = Kinds::default();
        let first = kinds.of(&endpoint(0, 7));
        assert!((1..100).all(|n| Arc::ptr_eq(&kinds.of(&endpoint(n, 7)), &first)));
        assert_eq!(first.qos.user_data, [0; 9]);
        assert!(!Arc::ptr_eq(&kinds.of(&endpoint(1, 8)), &first));
        let other_type = EndpointData {
            type_name: "another".into(),
            ..endpoint(1, 7)
        };
        assert!(!Arc::ptr_eq(&kinds.of(&other_type), &first));
    }

    #[test]
    fn kinds_that_nothing_is_of_are_forgotten() {
        let mut kinds = Kinds::default();
        let kept: Vec<_> = (1..=10).map(|n| kinds.of(&endpoint(1, n))).collect();
        for depth in 1..=10_000 {
            kinds.of(&endpoint(1, depth));
        }
        assert!(kinds.len() <= SWEEP_AT_LEAST, "{}", kinds.len());
        for (depth, kind) in (1..).zip(&kept) {
            assert!(Arc::ptr_eq(&kinds.of(&endpoint(2, depth)), kind));
        }
    }
}
