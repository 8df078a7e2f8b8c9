//! Leases of remote participants on the monotonic clock (RTPS 2.5 §8.5.3.2,
//! `leaseDuration`): who has not been heard for so long is gone.
//!
//! Renewal happens for every datagram, so it is one map look-up and one store.
//! The next look at the table is a lower bound that renewals leave alone: the
//! table wakes up once per shortest lease, not once per datagram.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::time::{Duration, Instant};

struct Lease {
    span: Duration,
    heard: Instant,
}

/// The leases of all known participants. Bounded by whoever grants them.
#[derive(Default)]
pub(crate) struct Leases {
    leases: BTreeMap<GuidPrefix, Lease>,
    /// No lease ends before this.
    look_at: Option<Instant>,
}

impl Leases {
    /// Grants or changes a lease that starts now.
    pub(crate) fn grant(&mut self, now: Instant, prefix: GuidPrefix, span: Duration) {
        self.leases.insert(prefix, Lease { span, heard: now });
        let end = now + span;
        self.look_at = Some(self.look_at.map_or(end, |at| at.min(end)));
    }

    /// The participant was heard. Unknown ones are ignored.
    pub(crate) fn renew(&mut self, now: Instant, prefix: GuidPrefix) {
        if let Some(lease) = self.leases.get_mut(&prefix) {
            lease.heard = lease.heard.max(now);
        }
    }

    /// The participant said goodbye.
    pub(crate) fn revoke(&mut self, prefix: GuidPrefix) {
        self.leases.remove(&prefix);
    }

    /// When the participant was last heard.
    pub(crate) fn heard(&self, prefix: GuidPrefix) -> Option<Instant> {
        self.leases.get(&prefix).map(|lease| lease.heard)
    }

    /// Removes and returns the participants whose lease has ended.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<GuidPrefix> {
        if self.look_at.is_none_or(|at| now < at) || fault!("lease-never-ends") {
            return Vec::new();
        }
        let expired: Vec<GuidPrefix> = self
            .leases
            .iter()
            .filter(|(_, lease)| match fault!("lease-ends-too-early") {
                true => lease.heard + lease.span.half() <= now,
                false => lease.heard + lease.span <= now,
            })
            .map(|(prefix, _)| *prefix)
            .collect();
        for prefix in &expired {
            self.leases.remove(prefix);
        }
        let end = |l: &Lease| match fault!("lease-ends-too-early") {
            true => l.heard + l.span.half(),
            false => l.heard + l.span,
        };
        self.look_at = self.leases.values().map(end).min();
        expired
    }

    /// When to look again, if anything can ever expire.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.look_at.filter(|at| *at != Instant::FAR_FUTURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_lease_outlives_its_first_end_and_an_infinite_one_never_wakes_us() {
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
        assert!(leases.take_expired(at(10)).is_empty());
        assert_eq!(leases.next_timeout(), Some(at(16)));
        assert_eq!(leases.take_expired(at(16)), [a]);
        assert_eq!(leases.take_expired(at(20)), [b]);
        assert_eq!(leases.next_timeout(), None);
    }
}
