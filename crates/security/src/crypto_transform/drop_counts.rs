//! Drop reasons: counts what the crypto transform dropped, and reports each peer
//! and reason once instead of once per packet.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_rtps::id::GuidPrefix;

/// Why received data is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum DropReason {
    /// It cannot be parsed, or it was changed where no MAC shows that.
    #[error("it is malformed")]
    Malformed,
    /// It is from a participant that has not authenticated.
    #[error("the participant has not authenticated, and the governance does not allow others")]
    Unauthenticated,
    /// It is less protected than the governance requires.
    #[error("it is less protected than the governance asks for")]
    Unprotected,
    /// It is of a built-in channel that a peer of another stack uses beside the
    /// protected one. Nothing is lost with it.
    #[error("it is of a built-in channel that is not protected, and not needed")]
    UnprotectedBuiltin,
    /// Its key has not arrived (yet), or belongs to another endpoint.
    #[error("no key is known for it")]
    Key,
    /// It was changed on its way, or made without the key.
    #[error("its MAC is wrong: it was changed, or made without the key")]
    Forged,
    /// It was received before, or is older than the replay window.
    #[error("it was received before")]
    Replayed,
    /// Its endpoint matches no endpoint here.
    #[error("its endpoint is not matched here")]
    Unmatched,
    /// It names another participant as its source than the one it came from.
    #[error("it names another participant as its source")]
    SourceMismatch,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Malformed,
        Self::Unauthenticated,
        Self::Unprotected,
        Self::UnprotectedBuiltin,
        Self::Key,
        Self::Forged,
        Self::Replayed,
        Self::Unmatched,
        Self::SourceMismatch,
    ];

    /// Whether it indicates an attack or a wrong configuration. The other reasons
    /// occur normally: new peers whose keys are not exchanged yet, and datagrams
    /// that the network duplicated.
    pub const fn is_suspicious(self) -> bool {
        matches!(
            self,
            Self::Malformed | Self::Unprotected | Self::Forged | Self::SourceMismatch
        )
    }
}

/// Limit of reported peers and reasons. Further ones are only counted.
const REPORTED_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct DropCounts {
    state: Mutex<UnreportedDrops>,
    /// There are unreported drops.
    has_unreported: AtomicBool,
}

#[derive(Debug, Default)]
struct UnreportedDrops {
    counts: [u64; DropReason::ALL.len()],
    told: BTreeSet<(GuidPrefix, DropReason)>,
    unreported: Vec<(GuidPrefix, DropReason)>,
}

impl DropCounts {
    pub fn record(&self, from: GuidPrefix, reason: DropReason) {
        let mut state = self.state.lock();
        let at = DropReason::ALL.iter().position(|one| *one == reason);
        if let Some(count) = at.and_then(|at| state.counts.get_mut(at)) {
            *count = count.saturating_add(1);
        }
        if state.told.len() < REPORTED_MAX && state.told.insert((from, reason)) {
            state.unreported.push((from, reason));
            self.has_unreported.store(true, Ordering::Release);
        }
    }

    pub fn take_unreported(&self) -> Vec<(GuidPrefix, DropReason)> {
        // Checked for every datagram: a load is cheaper than an exchange.
        let has_unreported = self.has_unreported.load(Ordering::Relaxed);
        if has_unreported && self.has_unreported.swap(false, Ordering::AcqRel) {
            std::mem::take(&mut self.state.lock().unreported)
        } else {
            Vec::new()
        }
    }

    pub fn count(&self, reason: DropReason) -> u64 {
        let state = self.state.lock();
        let mut counts = DropReason::ALL.iter().zip(state.counts);
        counts
            .find(|(one, _)| **one == reason)
            .map_or(0, |(_, count)| count)
    }

    /// A peer that returns is reported again.
    pub fn forget(&self, prefix: GuidPrefix) {
        self.state.lock().told.retain(|(from, _)| *from != prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> GuidPrefix {
        GuidPrefix([number; 12])
    }

    #[test]
    fn each_peer_and_reason_is_reported_once_and_counted_always() {
        let counts = DropCounts::default();
        assert!(counts.take_unreported().is_empty());
        for _ in 0..3 {
            counts.record(peer(1), DropReason::Forged);
        }
        counts.record(peer(1), DropReason::Key);
        counts.record(peer(2), DropReason::Key);
        let reported = [
            (peer(1), DropReason::Forged),
            (peer(1), DropReason::Key),
            (peer(2), DropReason::Key),
        ];
        assert_eq!(counts.take_unreported(), reported);
        counts.record(peer(2), DropReason::Key);
        assert!(counts.take_unreported().is_empty());
        // A peer that left and came back is reported again.
        counts.forget(peer(2));
        counts.record(peer(1), DropReason::Key);
        counts.record(peer(2), DropReason::Key);
        assert_eq!(counts.take_unreported(), [(peer(2), DropReason::Key)]);
        for reason in DropReason::ALL {
            let wanted = match reason {
                DropReason::Forged => 3,
                DropReason::Key => 5,
                _ => 0,
            };
            assert_eq!(counts.count(reason), wanted, "{reason:?}");
        }
    }

    #[test]
    fn a_crowd_of_peers_is_reported_up_to_the_limit() {
        let counts = DropCounts::default();
        for number in 0..=REPORTED_MAX {
            let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
            let from = GuidPrefix([high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            counts.record(from, DropReason::Unauthenticated);
        }
        assert_eq!(counts.take_unreported().len(), REPORTED_MAX);
        let count = u64::try_from(REPORTED_MAX).unwrap() + 1;
        assert_eq!(counts.count(DropReason::Unauthenticated), count);
    }
}
