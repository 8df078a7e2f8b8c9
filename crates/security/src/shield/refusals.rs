//! What was refused of peers: counted, and told once per peer and reason, not
//! per packet.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_rtps::id::GuidPrefix;

/// Why something that arrived is not handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refusal {
    /// Not to be taken apart, or changed on the way where it cannot be told.
    #[error("it is malformed")]
    Malformed,
    /// From a participant that has not authenticated.
    #[error("the participant has not authenticated, and the governance does not allow others")]
    Stranger,
    /// Less protected than the governance asks for.
    #[error("it is less protected than the governance asks for")]
    Unprotected,
    /// Of a built-in channel that a peer of another stack uses beside the one that
    /// is protected; nothing is lost with it.
    #[error("it is of a built-in channel that is not protected, and not needed")]
    Bare,
    /// Its key has not come (yet), or is of another endpoint.
    #[error("no key is known for it")]
    Key,
    /// Changed on its way, or not made by whom it says.
    #[error("its code is wrong: it was changed, or made without the key")]
    Forged,
    /// Seen before, or too long ago to be told.
    #[error("it was received before")]
    Replayed,
    /// Of an endpoint that matches nothing here.
    #[error("its endpoint is not matched here")]
    Unmatched,
    /// In the name of another participant than the one it came from.
    #[error("it speaks in the name of another participant")]
    AnotherSource,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Malformed,
        Self::Stranger,
        Self::Unprotected,
        Self::Bare,
        Self::Key,
        Self::Forged,
        Self::Replayed,
        Self::Unmatched,
        Self::AnotherSource,
    ];

    /// Whether somebody seems to be up to something, or is set up wrongly.
    /// Newcomers whose keys are still under way, and datagrams that the network
    /// doubled, cause the others.
    pub const fn is_suspicious(self) -> bool {
        matches!(
            self,
            Self::Malformed | Self::Unprotected | Self::Forged | Self::AnotherSource
        )
    }
}

/// Peers and reasons that were told; beyond it only counted.
const TOLD_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    noted: Mutex<Noted>,
    /// There is something that was not told.
    has_news: AtomicBool,
}

#[derive(Debug, Default)]
struct Noted {
    counts: [u64; Refusal::ALL.len()],
    told: BTreeSet<(GuidPrefix, Refusal)>,
    news: Vec<(GuidPrefix, Refusal)>,
}

impl Refusals {
    pub fn note(&self, from: GuidPrefix, refusal: Refusal) {
        let mut noted = self.noted.lock();
        let at = Refusal::ALL.iter().position(|one| *one == refusal);
        if let Some(count) = at.and_then(|at| noted.counts.get_mut(at)) {
            *count = count.saturating_add(1);
        }
        if noted.told.len() < TOLD_MAX && noted.told.insert((from, refusal)) {
            noted.news.push((from, refusal));
            self.has_news.store(true, Ordering::Release);
        }
    }

    pub fn news(&self) -> Vec<(GuidPrefix, Refusal)> {
        // Asked for every datagram: a look is cheaper than an exchange.
        let has_news = self.has_news.load(Ordering::Relaxed);
        match has_news && self.has_news.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut self.noted.lock().news),
            false => Vec::new(),
        }
    }

    pub fn count(&self, refusal: Refusal) -> u64 {
        let noted = self.noted.lock();
        let mut counts = Refusal::ALL.iter().zip(noted.counts);
        counts
            .find(|(one, _)| **one == refusal)
            .map_or(0, |(_, count)| count)
    }

    /// A peer that comes back is told of anew.
    pub fn forget(&self, prefix: GuidPrefix) {
        self.noted.lock().told.retain(|(from, _)| *from != prefix);
    }
}
