//! Heartbeats that answer the ACKNACKs of a reader: the first at once, further ones at
//! most once per [`INTERVAL`]. None is lost: what came in between is answered by one
//! heartbeat at its end.
//!
//! An ACKNACK without the final flag asks for a heartbeat (RTPS 2.5 §8.3.8.1.5). Without
//! security anyone who spoofs an address can ask 100 000 times a second.

use crate::time::{Duration, Instant};

/// The time between two answers. A reader asks again after its heartbeat response delay,
/// which is a few milliseconds in most implementations.
const INTERVAL: Duration = Duration::from_millis(1);

/// When one reader is answered again.
#[derive(Debug)]
pub(super) struct AckAnswer {
    /// The next answer is not sent before.
    next_at: Instant,
    /// An answer waits for that time.
    is_deferred: bool,
}

impl AckAnswer {
    pub const NONE: Self = Self {
        next_at: Instant::ZERO,
        is_deferred: false,
    };

    /// An ACKNACK asks for an answer. `None` if it is sent now, else when.
    pub fn ask(&mut self, now: Instant) -> Option<Instant> {
        self.is_deferred = self.next_at > now;
        if self.is_deferred {
            return Some(self.next_at);
        }
        self.next_at = now.after(INTERVAL);
        None
    }

    /// When the answer that waits is due.
    pub fn deferred_until(&self) -> Option<Instant> {
        self.is_deferred.then_some(self.next_at)
    }
}
