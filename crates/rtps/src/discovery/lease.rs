//! Participant lease (RTPS 2.5 §8.5.3.2, `leaseDuration`) on the monotonic clock: a
//! remote participant without a datagram for that long is lost.
//!
//! Every datagram renews a lease, with one map look-up and one store. The next check of
//! the table is a lower bound that renewals do not change. So the table wakes up once
//! per shortest lease, not once per datagram. The participant removes the lost ones
//! (`participant/mod.rs`, `handle_timeout`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::time::{Duration, Instant};

struct Lease {
    span: Duration,
    last_heard: Instant,
}

/// The leases of all known participants. The caller limits their number.
#[derive(Default)]
pub(crate) struct Leases {
    leases: BTreeMap<GuidPrefix, Lease>,
    /// No lease expires before this.
    next_check: Option<Instant>,
}

impl Leases {
    /// Grants or changes a lease that starts now.
    pub(crate) fn grant(&mut self, now: Instant, prefix: GuidPrefix, span: Duration) {
        self.leases.insert(
            prefix,
            Lease {
                span,
                last_heard: now,
            },
        );
        let end = now + span;
        self.next_check = Some(self.next_check.map_or(end, |at| at.min(end)));
    }

    /// Renews a lease. Unknown participants are ignored.
    pub(crate) fn renew(&mut self, now: Instant, prefix: GuidPrefix) {
        if let Some(lease) = self.leases.get_mut(&prefix) {
            lease.last_heard = lease.last_heard.max(now);
        }
    }

    /// Ends a lease after a dispose.
    pub(crate) fn revoke(&mut self, prefix: GuidPrefix) {
        self.leases.remove(&prefix);
    }

    /// When the last datagram of the participant came.
    pub(crate) fn last_heard(&self, prefix: GuidPrefix) -> Option<Instant> {
        self.leases.get(&prefix).map(|lease| lease.last_heard)
    }

    /// Whether a lease has expired. One that was renewed has not, although its check is due.
    pub(crate) fn has_expired(&self, now: Instant) -> bool {
        let is_due = self.next_check.is_some_and(|at| at <= now);
        is_due
            && self
                .leases
                .values()
                .any(|lease| lease.last_heard + lease.span <= now)
    }

    /// Removes and returns the participants whose lease has expired.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<GuidPrefix> {
        if self.next_check.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let expired: Vec<GuidPrefix> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.last_heard + lease.span <= now)
            .map(|(prefix, _)| *prefix)
            .collect();
        for prefix in &expired {
            self.leases.remove(prefix);
        }
        let end = |l: &Lease| l.last_heard + l.span;
        self.next_check = self.leases.values().map(end).min();
        expired
    }

    /// When to check again, if any lease can expire.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.next_check.filter(|at| *at != Instant::FAR_FUTURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_lease_outlives_its_first_end_and_an_infinite_one_never_wakes_up() {
        let mut leases = Leases::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let (a, b, c) = (
            GuidPrefix([1; 12]),
            GuidPrefix([2; 12]),
            GuidPrefix([3; 12]),
        );
        leases.grant(at(0), c, Duration::INFINITE);
        assert_eq!(leases.next_timeout(), None);
        leases.grant(at(0), a, Duration::from_secs(10));
        leases.grant(at(0), b, Duration::from_secs(20));
        leases.renew(at(6), a);
        assert_eq!(leases.next_timeout(), Some(at(10)));
        assert!(!leases.has_expired(at(10)));
        assert!(leases.take_expired(at(10)).is_empty());
        assert_eq!(leases.next_timeout(), Some(at(16)));
        assert!(leases.has_expired(at(16)));
        assert_eq!(leases.take_expired(at(16)), [a]);
        assert_eq!(leases.take_expired(at(20)), [b]);
        assert_eq!(leases.next_timeout(), None);
    }
}
