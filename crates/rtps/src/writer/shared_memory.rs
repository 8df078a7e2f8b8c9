//! Readers behind the shared-memory transport.
//!
//! A connection loses nothing silently: a message is refused, or the connection
//! ends, and the sender learns both at once. So its readers acknowledge without a
//! request. A writer with no other readers requests acknowledgements only if none
//! came for long, or if the application waits for them.

use super::Writer;
use crate::time::{Duration, Instant};

impl Writer {
    /// Whether all reliable readers acknowledge without a request.
    pub(super) fn expects_unsolicited_acks(&self) -> bool {
        self.counts.only_shared_memory && !self.counts.send_refused && !self.retention.blocked
    }

    /// The delay between a write and the request for acknowledgements.
    pub(super) fn heartbeat_delay(&self) -> Duration {
        if self.expects_unsolicited_acks() {
            self.config.heartbeat.shared_memory_period
        } else {
            self.config.heartbeat.period
        }
    }

    /// Notes whether all reliable readers use shared memory. When one no longer
    /// does, its data in transit may be lost, so acknowledgements are requested
    /// soon.
    pub(super) fn note_only_shared_memory(&mut self, only_shared_memory: bool) {
        let was_only_shared_memory =
            core::mem::replace(&mut self.counts.only_shared_memory, only_shared_memory);
        if was_only_shared_memory && !only_shared_memory {
            self.request_acks_by(self.clock.after(self.config.heartbeat.period));
        }
    }

    /// Notes that a connection refused the last message.
    pub fn note_send_refused(&mut self, now: Instant) {
        self.clock = now;
        self.counts.send_refused = true;
        self.request_acks_by(now.after(self.config.heartbeat.period));
    }

    /// Notes that everything is acknowledged, so nothing was lost.
    pub(super) fn note_shared_memory_acked(&mut self) {
        self.counts.send_refused = false;
        if self.counts.only_shared_memory {
            self.ack_requests.restart();
        }
    }
}
