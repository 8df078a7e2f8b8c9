//! Heartbeat schedule: the heartbeat period of one destination (RTPS 2.5 §8.4.7.1,
//! heartbeatPeriod), with its own back-off.

use super::config::HeartbeatConfig;
use crate::retry_backoff::RetryBackoff;
use crate::time::Instant;

/// The heartbeat schedule of one destination.
#[derive(Debug)]
pub(super) struct HeartbeatSchedule {
    pub backoff: RetryBackoff,
    /// When it gets the next heartbeat, if something is unacknowledged then.
    pub next_at: Instant,
    /// The last undirected number whose acknowledgement was requested.
    pub requested_through: i64,
    /// Heartbeats since its last answer.
    pub unanswered: u32,
}

impl HeartbeatSchedule {
    /// Nothing is unacknowledged, and no heartbeat was sent.
    pub const fn new(config: &HeartbeatConfig) -> Self {
        Self {
            backoff: config.backoff(false),
            next_at: Instant::FAR_FUTURE,
            requested_through: 0,
            unanswered: 0,
        }
    }

    /// Heartbeats since its last answer.
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    pub fn reset(&mut self, config: &HeartbeatConfig, has_acknowledged: bool) {
        self.backoff = config.backoff(has_acknowledged);
    }

    /// Notes an answer. Returns true if it had been silent for long.
    pub fn note_acknack(&mut self, config: &HeartbeatConfig) -> bool {
        core::mem::take(&mut self.unanswered) > config.unanswered_max
    }
}
