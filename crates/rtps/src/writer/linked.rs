//! Readers behind links of shared memory. A link loses nothing unsaid: it
//! refuses, or it ends, and both are known at once. So its readers acknowledge
//! without being asked, and a writer that has no others asks only when that has
//! not come for long, or when somebody waits for it.

use super::Writer;
use crate::time::{Duration, Instant};

impl Writer {
    /// Whether all reliable readers will acknowledge unasked.
    pub(super) fn trusts_links(&self) -> bool {
        self.is_linked && !self.refused && !self.blocked
    }

    /// How long after a write acknowledgements are asked for.
    pub(super) fn pause_after_write(&self) -> Duration {
        match self.trusts_links() {
            true => self.config.heartbeat.linked,
            false => self.config.heartbeat.first,
        }
    }

    /// Whether all reliable readers are linked now. What is under way to one that
    /// is no more is asked for soon: it may be lost.
    pub(super) fn note_linked(&mut self, is_linked: bool) {
        let was_linked = core::mem::replace(&mut self.is_linked, is_linked);
        if was_linked && !is_linked {
            self.hurry(self.clock.after(self.config.heartbeat.first));
        }
    }

    /// A link has refused what was just sent.
    pub fn note_refused(&mut self, now: Instant) {
        self.clock = now;
        self.refused = true;
        self.hurry(now.after(self.config.heartbeat.first));
    }

    /// All was acknowledged, so nothing was lost.
    pub(super) fn note_linked_acked(&mut self) {
        self.refused = false;
        if self.is_linked {
            self.unasked_samples = 0;
            self.unasked_bytes = 0;
        }
    }
}
