//! Check of the source address of user traffic, and the lease renewal by it: one
//! look-up per datagram.
//!
//! The participant judges an address ([`Participant::accepts_source`]) and renews the
//! lease. Its answer is kept for a moment, so that its lock is taken five times a
//! second per peer, and not per datagram. Called by `dispatch`.
//!
//! [`Participant::accepts_source`]: pteros_rtps::participant::Participant::accepts_source

use std::collections::BTreeMap;

use pteros_rtps::fault;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::Locator;
use pteros_rtps::time::{Duration, Instant};

/// How long an answer is kept, and how often ordinary traffic of a peer renews its
/// lease.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// Answers kept. Beyond it all are forgotten and asked for once more.
const CHECKS_MAX: usize = 1024;

/// The source of messages that came by shared memory.
const SHARED_MEMORY: [u8; 16] = [0; 16];

/// The answers of the last moment, by participant and address.
#[derive(Default)]
pub(crate) struct SourceChecks {
    checks: BTreeMap<(GuidPrefix, [u8; 16]), (Instant, bool)>,
    /// The count of changed participants when they were asked for.
    peers_changed: u64,
}

/// The outcome of a check.
#[derive(Clone, Copy)]
pub(crate) struct SourceCheck {
    /// The datagram may speak for the participant.
    pub(crate) accepted: bool,
    /// The participant was asked, and may have something to send or to tell.
    pub(crate) is_new: bool,
}

impl SourceChecks {
    /// Whether a datagram from this address may speak for a participant: asks unless
    /// it did a moment ago. `peers_changed` counts participants discovered, changed or
    /// lost.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        peers_changed: u64,
        (prefix, from): (GuidPrefix, Locator),
        ask: impl FnOnce() -> bool,
    ) -> SourceCheck {
        if self.peers_changed != peers_changed {
            // An unknown participant may send from anywhere, a known one may not.
            self.checks.clear();
            self.peers_changed = peers_changed;
        }
        let key = (prefix, from.address);
        let known = self.checks.get(&key).copied();
        let known = known.filter(|(at, _)| now.since(*at) < CHECK_PERIOD);
        let accepted = known.map_or_else(ask, |(_, accepted)| accepted);
        if known.is_none() {
            self.note(now, key, accepted);
        }
        SourceCheck {
            accepted,
            is_new: known.is_none(),
        }
    }

    /// Whether to renew the lease of a peer, after a message by shared memory.
    pub(crate) fn renews(&mut self, now: Instant, prefix: GuidPrefix) -> bool {
        let key = (prefix, SHARED_MEMORY);
        let known = self.checks.get(&key);
        let is_due = known.is_none_or(|(at, _)| now.since(*at) >= CHECK_PERIOD);
        if is_due {
            self.note(now, key, true);
        }
        is_due
    }

    fn note(&mut self, now: Instant, key: (GuidPrefix, [u8; 16]), accepted: bool) {
        if self.checks.len() >= CHECKS_MAX || fault!("lease-renewals-dropped") {
            self.checks.clear();
        }
        self.checks.insert(key, (now, accepted));
    }
}
