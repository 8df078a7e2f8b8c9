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
use super::config::Burst;
use super::data_encoder::BurstBudget;
use super::proxy::Destination;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;

impl Writer {
    /// As [`Writer::poll_transmit`], with bursts of this size.
    ///
    /// A burst ends with the datagram that reaches either limit. It exceeds `bytes`
    /// by less than that datagram.
    pub fn poll_transmit_up_to(&mut self, now: Instant, burst: Burst, out: &mut Outbox) -> bool {
        self.clock = now;
        let mut budget = BurstBudget::new(burst);
        let new_data_due = core::mem::take(&mut self.pending.new_data_due)
            && self.cursor.number <= self.released();
        if self.pending.any && !new_data_due && !self.send_pending(now, out, &mut budget) {
            self.pending.new_data_due = self.config.flow_controlled;
            return true;
        }
        !self.push_new_changes(now, out, &mut budget) || self.pending.any
    }

    /// Puts only liveliness assertions into `out`: those of a flow-controlled
    /// writer are not delayed.
    pub fn poll_liveliness_assertions(&mut self, out: &mut Outbox) {
        let mut budget = BurstBudget::new(self.config.burst);
        let sent = self.cursor.number.saturating_sub(1);
        for at in 0..self.destinations.len() {
            let due = |destination: &&mut Destination| {
                destination.assertion_due && destination.readers > 0
            };
            if self.destinations.get_mut(at).filter(due).is_none() {
                continue;
            }
            let mut heartbeat = self.heartbeat(at, true, sent);
            heartbeat.liveliness = true;
            if !self.send_heartbeat(at, None, &heartbeat, out, &mut budget) {
                return;
            }
            if let Some(destination) = self.destinations.get_mut(at) {
                destination.assertion_due = false;
            }
        }
    }

    /// Whether a poll would send something. [`Writer::next_timeout`] of a
    /// flow-controlled writer does not report it.
    pub fn has_output(&self) -> bool {
        self.pending.any || (self.cursor.number <= self.released() && !self.readers.is_empty())
    }

    /// The number of written but unsent samples, including a partly sent one.
    pub fn unsent_count(&self) -> usize {
        let unsent = |number: &i64| *number >= self.cursor.number;
        let numbers = self.history.iter().rev().map(|change| change.sequence.0);
        numbers.take_while(unsent).count()
    }

    /// Whether flow control has not released this change yet.
    pub(super) fn is_unsent(&self, sequence: SequenceNumber) -> bool {
        self.config.flow_controlled && sequence.0 >= self.cursor.number
    }

    /// Counts a change that is removed before it was sent, and returns whether it
    /// was unsent.
    pub(super) fn note_unsent(&mut self, sequence: SequenceNumber) -> bool {
        let is_unsent = self.is_unsent(sequence);
        self.stats.replaced_unsent.tally_by(u64::from(is_unsent));
        is_unsent
    }

    /// Drops what was kept beyond the history depth while `sent` was partly sent. Its
    /// replacement may have been the last write, so no later one does it.
    pub(super) fn drop_surplus(&mut self, sent: SequenceNumber) {
        // Nothing is left of it: it expired, or there was none.
        let Some(sent) = self.history.find(sent).filter(|_| !self.is_keep_all()) else {
            return;
        };
        let key = sent.key_hash;
        if let Some(key) = key {
            let depth = self.retention.depth;
            while let Some((oldest, count)) = self.history.instance(&key)
                && count > depth
            {
                self.history.remove(oldest);
            }
        }
        let samples_max = self.retention.samples_max_of(key.is_some());
        while self.history.samples() > samples_max
            && let Some(oldest) = self.history.first().map(|change| change.sequence)
        {
            self.overwrite(oldest);
        }
    }

    /// Whether this change is partly sent and must not be replaced.
    pub(super) fn is_partly_sent(&self, sequence: SequenceNumber) -> bool {
        !self.is_keep_all() && sequence.0 == self.cursor.number && self.cursor.is_partly_sent()
    }
}
