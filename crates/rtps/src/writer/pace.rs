//! A writer whose owner decides when it sends and how much: the writer's part
//! of the asynchronous publish mode.
//!
//! What it has not sent yet it does not speak of: its heartbeats name no
//! unsent sample, so no reader asks for one; a sample that is replaced or
//! expires before it was sent is declared irrelevant by a GAP and is no loss.
//! As with any writer, KEEP_LAST does not replace a sample whose fragments are
//! on their way, or a fast application would let no large sample arrive: that one
//! is kept beyond the depth until it is through. KEEP_ALL refuses a write while what it keeps
//! is unsent, whoever reads.

use super::Writer;
use super::config::Burst;
use super::parcel::Left;
use super::proxy::Group;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;

impl Writer {
    /// As [`Writer::poll_transmit`], in bursts of this size. A burst ends with
    /// the datagram that reaches either bound: of `bytes` it may be over by
    /// less than that datagram.
    pub fn poll_transmit_up_to(&mut self, now: Instant, burst: Burst, out: &mut Outbox) -> bool {
        self.clock = now;
        let mut left = Left::of(burst);
        let news_due = core::mem::take(&mut self.news_due) && self.cursor.number <= self.released();
        if self.has_debts && !news_due && !self.pay_debts(now, out, &mut left) {
            self.news_due = self.config.paced;
            return true;
        }
        !self.push(now, out, &mut left) || self.has_debts
    }

    /// Puts nothing but assertions of liveliness into `out`: those of a paced
    /// writer that do not wait for their turn.
    pub fn poll_assertions(&mut self, out: &mut Outbox) {
        let mut left = Left::of(self.config.burst);
        let sent = self.cursor.number.saturating_sub(1);
        for at in 0..self.groups.len() {
            let due = |group: &&mut Group| group.assertion_due && group.readers > 0;
            if self.groups.get_mut(at).filter(due).is_none() {
                continue;
            }
            let mut heartbeat = self.heartbeat(at, true, sent);
            heartbeat.liveliness = true;
            if !self.send_heartbeat(at, None, &heartbeat, out, &mut left) {
                return;
            }
            if let Some(group) = self.groups.get_mut(at) {
                group.assertion_due = false;
            }
        }
    }

    /// Whether a poll would send something. A paced writer's
    /// [`Writer::next_timeout`] does not tell.
    pub fn has_output(&self) -> bool {
        self.has_debts || (self.cursor.number <= self.released() && !self.readers.is_empty())
    }

    /// Samples that were written and have not been sent, the one on its way
    /// included.
    pub fn unsent_count(&self) -> usize {
        let unsent = |number: &i64| *number >= self.cursor.number;
        let numbers = self.history.iter().rev().map(|change| change.sequence.0);
        numbers.take_while(unsent).count()
    }

    /// Whether this change waits for its owner's leave.
    pub(super) fn is_unsent(&self, sequence: SequenceNumber) -> bool {
        self.config.paced && sequence.0 >= self.cursor.number
    }

    /// Notes that a change goes before it was sent, if that is so.
    pub(super) fn note_unsent(&mut self, sequence: SequenceNumber) -> bool {
        let is_unsent = self.is_unsent(sequence);
        self.stats.replaced_unsent.tally_by(u64::from(is_unsent));
        is_unsent
    }

    /// Whether this change is partly sent and must not be replaced.
    pub(super) fn is_begun(&self, sequence: SequenceNumber) -> bool {
        !self.is_keep_all() && sequence.0 == self.cursor.number && self.cursor.is_begun()
    }
}
