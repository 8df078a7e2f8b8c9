//! Flow control of a writer: its part of the asynchronous publish mode. The owner
//! decides when and how much to send.
//!
//! Heartbeats name no unsent sample, so no reader requests one. A sample that is
//! replaced or expires before it was sent is declared irrelevant by a GAP and is no
//! loss. As with any writer, KEEP_LAST does not replace a partly sent sample.
//! Otherwise a fast application would let no large sample arrive. It is kept beyond
//! the depth until it is sent. KEEP_ALL refuses a write while its history is
//! unsent, whatever readers are matched.

use super::Writer;
use super::burst_writer::BurstBudget;
use super::burst_writer::BurstWriter;
use super::config::Burst;
use super::heartbeats::HeartbeatSource;
use crate::outbox::Outbox;
use crate::time::Instant;

impl Writer {
    /// As [`Writer::poll_transmit`], with bursts of this size.
    ///
    /// A burst ends with the datagram that reaches either limit. It exceeds `bytes`
    /// by less than that datagram.
    pub fn poll_transmit_up_to(&mut self, now: Instant, burst: Burst, out: &mut Outbox) -> bool {
        self.clock = now;
        let mut budget = BurstBudget::new(burst);
        let new_data_due = core::mem::take(&mut self.transmission.pending.new_data_due)
            && self.transmission.cursor.number <= self.transmission.released(self.cache.last);
        if self.transmission.pending.any
            && !new_data_due
            && !self.send_pending(now, out, &mut budget)
        {
            self.transmission.pending.new_data_due = self.config.flow_controlled;
            return true;
        }
        !self.push_new_changes(now, out, &mut budget) || self.transmission.pending.any
    }

    /// Puts only liveliness assertions into `out`: those of a flow-controlled
    /// writer are not delayed.
    pub fn poll_liveliness_assertions(&mut self, out: &mut Outbox) {
        let mut budget = BurstBudget::new(self.config.burst);
        let cursor = &self.transmission.cursor;
        let source = HeartbeatSource::new(&self.config, &self.cache, cursor);
        let mut burst = BurstWriter {
            config: &self.config,
            out,
            budget: &mut budget,
            stats: &mut self.stats,
        };
        self.heartbeats
            .send_assertions(&mut self.matched, source, &mut burst);
    }

    /// Whether a poll would send something. [`Writer::next_timeout`] of a
    /// flow-controlled writer does not report it.
    pub fn has_output(&self) -> bool {
        self.transmission.pending.any
            || (self.transmission.cursor.number <= self.transmission.released(self.cache.last)
                && !self.matched.proxies.is_empty())
    }

    /// The number of written but unsent samples, including a partly sent one.
    pub fn unsent_count(&self) -> usize {
        let unsent = |number: &i64| *number >= self.transmission.cursor.number;
        let numbers = self
            .cache
            .history
            .iter()
            .rev()
            .map(|change| change.sequence.0);
        numbers.take_while(unsent).count()
    }
}
