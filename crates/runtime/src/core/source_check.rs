//! Source check of user traffic, with lease renewal: one look-up per datagram.
//!
//! The participant decides about an address ([`Participant::accepts_source`]) and renews
//! the lease. The decision is cached briefly. So its lock is taken five times a second
//! per peer instead of once per datagram. Called by `dispatch`.
//!
//! [`Participant::accepts_source`]: pteros_rtps::participant::Participant::accepts_source

use std::collections::BTreeMap;

use pteros_rtps::fault;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::Locator;
use pteros_rtps::time::{Duration, Instant};

/// Lifetime of a cached decision, and period at which a peer's user traffic renews its
/// lease.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// Cached decisions. When full, the cache is cleared.
const CHECKS_MAX: usize = 1024;

/// Source address of shared-memory messages.
const SHARED_MEMORY: [u8; 16] = [0; 16];

/// Cached decisions, by participant and address.
#[derive(Default)]
pub(crate) struct SourceChecks {
    checks: BTreeMap<(GuidPrefix, [u8; 16]), (Instant, bool)>,
    /// Count of changed participants at the time of the decisions.
    peers_changed: u64,
}

/// Outcome of a source check.
#[derive(Clone, Copy)]
pub(crate) struct SourceCheck {
    /// The datagram is accepted for the participant.
    pub(crate) accepted: bool,
    /// The participant made a new decision, and may have output.
    pub(crate) is_new: bool,
}

impl SourceChecks {
    /// Whether a datagram from this address is accepted for a participant, from the cache
    /// if possible. `peers_changed` counts participants discovered, changed or lost.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        peers_changed: u64,
        (prefix, from): (GuidPrefix, Locator),
        ask: impl FnOnce() -> bool,
    ) -> SourceCheck {
        if self.peers_changed != peers_changed {
            // An unknown participant may send from any address, a known one may not.
            self.checks.clear();
            self.peers_changed = peers_changed;
        }
        let address = if fault!("source-answer-kept-for-all") {
            SHARED_MEMORY
        } else {
            from.address
        };
        let key = (prefix, address);
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

    /// Whether to renew the lease of a peer after a shared-memory message.
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

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: GuidPrefix = GuidPrefix([1; 12]);
    const OTHER: GuidPrefix = GuidPrefix([2; 12]);

    fn at(host: u8, port: u16) -> Locator {
        Locator::udp_v4([10, 0, 0, host], port)
    }

    fn millis(count: i64) -> Instant {
        Instant::ZERO + Duration::from_secs(1) + Duration::from_millis(count)
    }

    #[test]
    fn an_answer_is_kept_for_a_moment_by_participant_and_address() {
        let mut checks = SourceChecks::default();
        let mut check = |now, changed, from, answer: Option<bool>| {
            let ask = || answer.expect("asked again");
            let SourceCheck { accepted, is_new } = checks.check(now, changed, from, ask);
            assert_eq!(is_new, answer.is_some());
            accepted
        };
        assert!(check(millis(0), 0, (PEER, at(1, 7411)), Some(true)));
        assert!(!check(millis(0), 0, (PEER, at(2, 7411)), Some(false)));
        assert!(!check(millis(0), 0, (OTHER, at(1, 7411)), Some(false)));
        // Ports of one address are equivalent, and refusals are cached as well.
        assert!(check(millis(199), 0, (PEER, at(1, 9999)), None));
        assert!(!check(millis(199), 0, (PEER, at(2, 7411)), None));
        assert!(!check(millis(200), 0, (PEER, at(1, 7411)), Some(false)));
        // A discovered or lost participant may change every decision.
        assert!(check(millis(201), 1, (PEER, at(1, 7411)), Some(true)));
        assert!(check(millis(202), 1, (PEER, at(1, 7411)), None));
    }

    #[test]
    fn shared_memory_renews_a_lease_five_times_a_second() {
        let mut checks = SourceChecks::default();
        let times = [0, 1, 199, 200, 399, 400].map(|at| checks.renews(millis(at), PEER));
        assert_eq!(times, [true, false, false, true, false, true]);
        assert!(checks.renews(millis(400), OTHER));
    }

    #[test]
    fn a_full_table_forgets_all_answers() {
        let mut checks = SourceChecks::default();
        let peer = |number: usize| {
            let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
            GuidPrefix([high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        };
        for number in 0..CHECKS_MAX {
            assert!(checks.renews(millis(0), peer(number)));
        }
        assert!(!checks.renews(millis(1), peer(0)));
        assert!(checks.renews(millis(1), peer(CHECKS_MAX)));
        assert_eq!(checks.checks.len(), 1);
        assert!(checks.renews(millis(1), peer(0)));
    }
}
