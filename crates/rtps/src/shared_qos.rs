//! Policies that many endpoints have in common, kept once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::qos::EndpointQos;

/// An endpoint's policies, shared with all that announce the same. A clone costs
/// a count; whoever changes them gets its own copy first.
#[derive(Clone, Default)]
pub struct SharedQos(Arc<EndpointQos>);

impl From<EndpointQos> for SharedQos {
    fn from(qos: EndpointQos) -> Self {
        Self(Arc::new(qos))
    }
}

impl Deref for SharedQos {
    type Target = EndpointQos;

    fn deref(&self) -> &EndpointQos {
        &self.0
    }
}

impl DerefMut for SharedQos {
    fn deref_mut(&mut self) -> &mut EndpointQos {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for SharedQos {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl fmt::Debug for SharedQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sets of policies that are looked for: a graph has some presets and, with the
/// hash in USER_DATA, some dozens of types.
const REMEMBERED_MAX: usize = 64;

/// The policies that were announced last, for those that come with the same.
/// What is beyond its limit is not shared.
#[derive(Default)]
pub(crate) struct QosTable {
    seen: Vec<SharedQos>,
    next: usize,
}

impl QosTable {
    /// Lets `qos` be the one that was seen before, if it says the same.
    pub(crate) fn share(&mut self, qos: &mut SharedQos) {
        if let Some(same) = self.seen.iter().find(|seen| *seen == qos) {
            *qos = same.clone();
            return;
        }
        match self.seen.get_mut(self.next) {
            Some(oldest) => *oldest = qos.clone(),
            None => self.seen.push(qos.clone()),
        }
        self.next = self.next.wrapping_add(1) % REMEMBERED_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::History;

    fn with_depth(depth: u32) -> SharedQos {
        let history = History::KeepLast(depth);
        EndpointQos {
            history,
            ..EndpointQos::default()
        }
        .into()
    }

    #[test]
    fn who_announces_the_same_shares_it_and_who_changes_it_gets_its_own() {
        let mut table = QosTable::default();
        let mut all: Vec<_> = (0..100).map(|_| with_depth(7)).collect();
        all.iter_mut().for_each(|qos| table.share(qos));
        assert!(all.iter().all(|qos| Arc::ptr_eq(&qos.0, &all[0].0)));
        all[5].history = History::KeepAll;
        assert_eq!(all[4], with_depth(7));
        assert_ne!(all[5], all[4]);
    }

    #[test]
    fn a_table_has_a_limit_and_forgets_the_oldest() {
        let mut table = QosTable::default();
        for depth in 1..=1_000 {
            table.share(&mut with_depth(depth));
        }
        assert_eq!(table.seen.len(), REMEMBERED_MAX);
        let shared = |depth| table.seen.contains(&with_depth(depth));
        assert!(shared(1_000) && !shared(1));
    }
}
