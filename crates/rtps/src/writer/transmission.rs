//! Transmission state of a writer: which changes were sent, which are held for
//! LATENCY_BUDGET, and what else waits to be sent.

use super::batch::{Batch, FRAME_BYTES, datagram_share, is_small};
use super::config::WriterConfig;
use super::pending_sends::PendingSends;
use super::send_cursor::SendCursor;
use super::timers::{TIMER_BATCH, WriterTimers};
use super::writer_cache::WriterCache;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

/// What a writer has sent and is to send.
#[derive(Debug)]
pub(super) struct Transmission {
    pub cursor: SendCursor,
    pub pending: PendingSends,
    /// Samples held for LATENCY_BUDGET, if there is one.
    batch: Option<Batch>,
}

impl Transmission {
    /// Nothing was written.
    pub fn new(latency_budget: Duration) -> Self {
        Self {
            cursor: SendCursor::at(1),
            pending: PendingSends::default(),
            batch: Batch::new(latency_budget, 0),
        }
    }

    /// The last number that was sent to every destination.
    pub const fn sent(&self) -> i64 {
        self.cursor.number.saturating_sub(1)
    }

    /// Whether samples may be held for LATENCY_BUDGET.
    pub const fn has_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// The last number of those up to `last` that may be sent.
    pub fn released(&self, last: SequenceNumber) -> i64 {
        match &self.batch {
            Some(batch) => batch.released.min(last.0),
            None => last.0,
        }
    }

    /// Releases the samples held for LATENCY_BUDGET.
    pub fn flush(&mut self, last: SequenceNumber, timers: &mut WriterTimers) {
        let Some(batch) = &mut self.batch else { return };
        batch.release(last.0);
        timers.stop(TIMER_BATCH);
    }

    /// Decides whether the newest sample is held. `space`: the bytes of a datagram for
    /// samples. `is_read`: there are readers.
    pub fn hold_for_batch(
        &mut self,
        now: Instant,
        cache: &WriterCache,
        space: usize,
        is_read: bool,
        timers: &mut WriterTimers,
    ) {
        let samples_max = cache.retention.samples_max_of(false);
        let (Some(batch), Some(newest)) = (&mut self.batch, cache.history.iter().next_back())
        else {
            return;
        };
        let bytes = datagram_share(newest);
        if batch.samples == 0 {
            timers.set(TIMER_BATCH, now.after(batch.budget));
        }
        let is_full = batch.hold(bytes, space);
        if newest.is_set_end()
            || batch.budget == Duration::ZERO
            || !is_small(newest)
            || !is_read
            || batch.samples >= samples_max
            || is_full
        {
            self.flush(cache.last, timers);
        }
    }

    /// Changes the latency budget.
    pub fn set_budget(
        &mut self,
        now: Instant,
        budget: Duration,
        last: SequenceNumber,
        timers: &mut WriterTimers,
    ) {
        match &mut self.batch {
            None => self.batch = Batch::new(budget, last.0),
            Some(batch) => {
                batch.budget = budget;
                if batch.samples > 0 {
                    timers.set_no_later(TIMER_BATCH, now.after(budget));
                }
            }
        }
        if budget == Duration::ZERO {
            self.flush(last, timers);
        }
    }

    /// The last of the consecutive small samples from `number` on that fit a datagram
    /// with this space.
    pub fn end_of_batch(&self, number: i64, cache: &WriterCache, mut space: usize) -> Option<i64> {
        let mut end = number;
        let released = self.released(cache.last);
        for (expected, change) in
            (number..=released).zip(cache.history.iter_from(SequenceNumber(number)))
        {
            let follows = is_small(change) && change.sequence.0 == expected;
            let Some(rest) = space
                .checked_sub(datagram_share(change))
                .filter(|_| follows)
            else {
                break;
            };
            space = rest;
            end = expected;
        }
        (end > number).then_some(end)
    }

    /// Whether flow control has not released this change yet.
    pub fn is_unsent(&self, sequence: SequenceNumber, config: &WriterConfig) -> bool {
        config.flow_controlled && sequence.0 >= self.cursor.number
    }

    /// Whether this change is partly sent and must not be replaced.
    pub fn is_partly_sent(&self, sequence: SequenceNumber, config: &WriterConfig) -> bool {
        !config.is_keep_all() && sequence.0 == self.cursor.number && self.cursor.is_partly_sent()
    }
}

impl WriterConfig {
    /// The bytes of a datagram for the samples of a batch.
    pub(super) fn batch_bytes_max(&self, is_same_host_only: bool) -> usize {
        let datagram = if is_same_host_only {
            usize::from(self.fragment_size.same_host)
        } else {
            self.datagram_bytes_max
        };
        datagram.saturating_sub(FRAME_BYTES)
    }
}
