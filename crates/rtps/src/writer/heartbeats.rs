//! Heartbeats of a writer: when each destination gets the next one (RTPS 2.5
//! §8.4.7.1, heartbeatPeriod).
//!
//! A heartbeat requests acknowledgements that have not come. Every destination has
//! its own back-off, because a slow or dead one must not slow down the others.
//! Heartbeats continue while a sample is not acknowledged (§8.4.2.2.3).

use super::reader_reset::ReaderResetDetector;
use super::{TIMER_HEARTBEAT, TIMER_RESET_PROBE, Writer};
use crate::time::Instant;

impl Writer {
    /// Marks a heartbeat as due for every destination with unacknowledged changes
    /// whose time has come, and schedules its next one after a longer pause.
    pub(super) fn schedule_heartbeats(&mut self, now: Instant) {
        self.check_stalls(now);
        // Unsent changes need no acknowledgement.
        let sent = self.cursor.number.saturating_sub(1);
        let shared = self.last_undirected.min(sent);
        let is_new_data_due = self.ack_requests.new_data_at <= now;
        let mut next = if !is_new_data_due {
            self.ack_requests.new_data_at
        } else if sent < self.last_undirected {
            // Unsent changes remain: readers owe acknowledgements soon after.
            now.after(self.config.heartbeat.period)
        } else {
            Instant::FAR_FUTURE
        };
        self.ack_requests.new_data_at = next;
        for reader in self.readers.iter_mut() {
            if !reader.has_unacked(shared) {
                continue;
            }
            let Some(destination) = self.destinations.get_mut(reader.destination) else {
                continue;
            };
            let has_acknowledged = destination.unconfirmed == 0;
            let heartbeat_schedule = &mut destination.heartbeat_schedule;
            if heartbeat_schedule.requested_through < shared && is_new_data_due {
                heartbeat_schedule.requested_through = shared;
                heartbeat_schedule.reset(&self.config.heartbeat, has_acknowledged);
                heartbeat_schedule.next_at = now;
            }
            if heartbeat_schedule.next_at <= now {
                heartbeat_schedule.next_at = now.after(heartbeat_schedule.backoff.delay());
                if !destination.heartbeat_due {
                    heartbeat_schedule.unanswered = heartbeat_schedule.unanswered.saturating_add(1);
                }
                destination.heartbeat_due = true;
                self.pending.any = true;
                // A blocked write must not wait longer.
                let period_max = if self.retention.blocked {
                    self.config.heartbeat.period_max
                } else {
                    self.config
                        .heartbeat
                        .period_max_after(heartbeat_schedule.unanswered)
                };
                heartbeat_schedule.backoff.advance(period_max);
            }
            next = next.min(heartbeat_schedule.next_at);
        }
        self.timers.set(TIMER_HEARTBEAT, next);
    }

    /// Requests the state of readers that are suspected of a reset.
    pub(super) fn probe_suspected_resets(&mut self, now: Instant) {
        let mut next = Instant::FAR_FUTURE;
        for reader in self.readers.iter_mut() {
            if ReaderResetDetector::probe(&mut reader.reset_detector, now) {
                reader.heartbeat_due = true;
                self.pending.any = true;
            }
            if let Some(open) = &reader.reset_detector {
                next = next.min(open.probe_at());
            }
        }
        self.timers.set(TIMER_RESET_PROBE, next);
    }

    /// Requests acknowledgement of the newest changes at `at`, or earlier.
    pub(super) fn schedule_new_data_heartbeat(&mut self, at: Instant) {
        self.ack_requests.new_data_at = self.ack_requests.new_data_at.min(at);
        self.timers.set_no_later(TIMER_HEARTBEAT, at);
    }

    /// Schedules the heartbeat of one destination at `at`, or earlier.
    pub(super) fn schedule_heartbeat_to(&mut self, destination: usize, at: Instant) {
        self.reset_heartbeat_backoff(destination);
        if let Some(destination) = self.destinations.get_mut(destination) {
            destination.heartbeat_schedule.next_at = destination.heartbeat_schedule.next_at.min(at);
            self.timers.set_no_later(TIMER_HEARTBEAT, at);
        }
    }

    /// Resets the back-off after new data for a destination, or after its progress.
    pub(super) fn reset_heartbeat_backoff(&mut self, destination: usize) {
        if let Some(destination) = self.destinations.get_mut(destination) {
            let has_acknowledged = destination.unconfirmed == 0;
            destination
                .heartbeat_schedule
                .reset(&self.config.heartbeat, has_acknowledged);
        }
    }

    /// Notes that a datagram requested acknowledgement up to `requested_through`
    /// from a destination. The next heartbeat follows when one for new data is due.
    pub(super) fn note_ack_requested(
        &mut self,
        now: Instant,
        destination: usize,
        requested_through: i64,
    ) {
        // The heartbeat for new data may have been scheduled meanwhile.
        let next = match self.ack_requests.new_data_at {
            Instant::FAR_FUTURE => now.after(self.config.heartbeat.period),
            at => at,
        };
        self.reset_heartbeat_backoff(destination);
        if let Some(destination) = self.destinations.get_mut(destination) {
            destination.heartbeat_schedule.requested_through = destination
                .heartbeat_schedule
                .requested_through
                .max(requested_through);
            destination.heartbeat_schedule.next_at = next;
            destination.round_trip.note_sent(now, requested_through);
            self.timers.set_no_later(TIMER_HEARTBEAT, next);
        }
    }

    /// Requests acknowledgements at `at`, or earlier: the application waits for
    /// them.
    pub fn request_acks_by(&mut self, at: Instant) {
        if self.all_acked {
            return;
        }
        for destination in &mut self.destinations {
            destination.heartbeat_schedule.next_at = destination.heartbeat_schedule.next_at.min(at);
        }
        self.schedule_new_data_heartbeat(at);
    }

    /// Stops all heartbeats: everything is acknowledged.
    pub(super) fn stop_heartbeats(&mut self) {
        for destination in &mut self.destinations {
            destination.heartbeat_schedule.next_at = Instant::FAR_FUTURE;
        }
        self.ack_requests.new_data_at = Instant::FAR_FUTURE;
        self.timers.stop(TIMER_HEARTBEAT);
        self.stop_stall_checks();
    }
}
