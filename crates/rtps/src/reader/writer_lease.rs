//! Liveliness of a matched writer as its reader sees it: the offered kind, the lease
//! and when it ends (DDS 1.4 §2.2.3.11, LIVELINESS).

use crate::qos::Liveliness;
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct WriterLease {
    pub kind: Liveliness,
    pub duration: Duration,
    pub alive: bool,
    /// When it ends without a sign of life.
    pub until: Instant,
}

impl WriterLease {
    /// The lease of a writer that is alive `now`.
    pub fn new(now: Instant, kind: Liveliness, duration: Duration) -> Self {
        Self {
            kind,
            duration,
            alive: true,
            until: now.after(duration),
        }
    }

    /// Renews the lease. Returns whether the writer was not alive.
    pub fn renew(&mut self, now: Instant) -> bool {
        self.until = now.after(self.duration);
        !core::mem::replace(&mut self.alive, true)
    }

    /// Ends the lease if its time has come. Returns whether it ended now.
    pub fn end_if_due(&mut self, now: Instant) -> bool {
        let ends = self.alive && self.until <= now;
        self.alive &= !ends;
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_once_and_a_sign_of_life_renews_it() {
        let lease = Duration::from_secs(1);
        let mut writer = WriterLease::new(Instant::ZERO, Liveliness::Automatic, lease);
        let end = Instant::ZERO.after(lease);
        assert!(!writer.end_if_due(Instant::ZERO));
        assert!(writer.end_if_due(end));
        assert!(!writer.end_if_due(end));
        assert!(writer.renew(end));
        assert!(!writer.renew(end));
        assert_eq!(writer.until, end.after(lease));
    }
}
