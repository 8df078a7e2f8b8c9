//! Interned QoS: equal announcements of many endpoints, stored once.
//!
//! A graph has some dozens of types, a few presets of policies, and a thousand
//! endpoints. They differ in GUID, topic and, with some stacks, in a part of
//! USER_DATA: rmw_cyclonedds and Pteros mark there which two endpoints of a service
//! belong together. Everything else is an [`InternedEndpoint`].

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::discovery::data::EndpointData;
use crate::id::Guid;
use crate::shared_qos::SharedQos;

/// The common part of many endpoints' announcements.
#[derive(PartialEq)]
pub(super) struct InternedEndpoint {
    /// Without GUID, topic, locators and USER_DATA.
    pub(super) common: EndpointData,
    /// The policies with the USER_DATA of the first endpoint, as the example for
    /// differences.
    pub(super) qos: SharedQos,
}

/// All interned announcements.
#[derive(Default)]
pub(super) struct EndpointInterner {
    /// One for each hash. An announcement with a colliding hash is not shared.
    by_hash: BTreeMap<u64, Arc<InternedEndpoint>>,
    /// At this number, unused ones are removed.
    sweep_at: usize,
}

/// Below this number removal gains nothing.
const SWEEP_AT_LEAST: usize = 64;

impl EndpointInterner {
    /// The interned part of an endpoint's announcement.
    pub(super) fn intern(&mut self, data: &EndpointData) -> Arc<InternedEndpoint> {
        let mut common = EndpointData {
            guid: Guid::UNKNOWN,
            topic: String::new(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            ..data.clone()
        };
        common.qos.user_data = Vec::new();
        let hash = hash_of(&common);
        if let Some(known) = self.by_hash.get(&hash)
            && known.common == common
        {
            return known.clone();
        }
        let qos = data.qos.clone();
        let interned = Arc::new(InternedEndpoint { common, qos });
        self.by_hash.insert(hash, interned.clone());
        if self.by_hash.len() > self.sweep_at.max(SWEEP_AT_LEAST) {
            self.by_hash
                .retain(|_, interned| Arc::strong_count(interned) > 1);
            self.sweep_at = self.by_hash.len().saturating_mul(2);
        }
        interned
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_hash.len()
    }
}

/// FNV-1a. An attacker who finds a collision gains nothing but the cost of its own
/// endpoints.
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
    fn endpoints_that_differ_in_names_and_user_data_only_share_one_interned_announcement() {
        let mut interner = EndpointInterner::default();
        let first = interner.intern(&endpoint(0, 7));
        assert!((1..100).all(|n| Arc::ptr_eq(&interner.intern(&endpoint(n, 7)), &first)));
        assert_eq!(first.qos.user_data, [0; 9]);
        assert!(!Arc::ptr_eq(&interner.intern(&endpoint(1, 8)), &first));
        let other_type = EndpointData {
            type_name: "another".into(),
            ..endpoint(1, 7)
        };
        assert!(!Arc::ptr_eq(&interner.intern(&other_type), &first));
    }

    #[test]
    fn unused_interned_announcements_are_dropped() {
        let mut interner = EndpointInterner::default();
        let kept: Vec<_> = (1..=10).map(|n| interner.intern(&endpoint(1, n))).collect();
        for depth in 1..=10_000 {
            interner.intern(&endpoint(1, depth));
        }
        assert!(interner.len() <= SWEEP_AT_LEAST, "{}", interner.len());
        for (depth, kind) in (1..).zip(&kept) {
            assert!(Arc::ptr_eq(&interner.intern(&endpoint(2, depth)), kind));
        }
    }
}
