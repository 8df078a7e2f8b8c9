//! Readers behind the shared-memory transport.
//!
//! A connection loses nothing silently: a message is refused, or the connection
//! ends, and the sender learns both at once. So its readers acknowledge without a
//! request. A writer with no other readers requests acknowledgements only if none
//! came for long, or if the application waits for them.

use super::Writer;
use super::reader_counts::ReaderCounts;
use crate::time::Instant;

impl ReaderCounts {
    /// Whether all reliable readers acknowledge without a request. `is_blocked`: a write
    /// waits for acknowledgements.
    pub fn expects_unsolicited_acks(&self, is_blocked: bool) -> bool {
        self.only_shared_memory && !self.send_refused && !is_blocked
    }
}

impl Writer {
    /// Notes that a connection refused the last message.
    pub fn note_send_refused(&mut self, now: Instant) {
        self.clock = now;
        self.matched.counts.send_refused = true;
        self.request_acks_by(now.after(self.config.heartbeat.period));
    }
}
