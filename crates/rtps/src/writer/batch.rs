//! LATENCY_BUDGET (DDS 1.4 §2.2.3.8): a writer that has one holds small samples
//! back to put several into one datagram.
//!
//! Held samples are sent together when the budget of the first of them is over,
//! when they fill a datagram, when a further one would replace or refuse one of
//! them, with a large sample, with the end of a coherent set, or when told to
//! ([`Writer::flush`]). Until then no heartbeat names them. A writer without a
//! budget has no [`Batch`] and asks for nothing but that.

use super::parcel::{Left, add_data, data_bytes};
use super::transmit::{Cursor, is_due};
use super::{TIMER_BATCH, Writer};
use crate::history::Change;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::Gap;

/// INFO_TS before a sample, and a GAP before one that is not for everybody.
const INFO_TS_BYTES: usize = 12;
const GAP_BYTES: usize = 32;
/// The header, INFO_DST, a GAP and two heartbeats.
const FRAME_BYTES: usize = 160;

/// What is held back.
#[derive(Debug)]
pub(super) struct Batch {
    /// Zero: nothing is held back any more.
    pub budget: Duration,
    /// All numbers up to this may go.
    released: i64,
    /// Held since then.
    pub samples: usize,
    bytes: usize,
}

impl Batch {
    /// For writers with a budget; all numbers up to `released` may go.
    pub fn new(budget: Duration, released: i64) -> Option<Self> {
        (budget > Duration::ZERO).then_some(Self {
            budget,
            released,
            samples: 0,
            bytes: 0,
        })
    }
}

impl Writer {
    /// Lets go of what is held back for the sake of LATENCY_BUDGET; poll
    /// transmissions then.
    pub fn flush(&mut self) {
        let Some(batch) = &mut self.batch else { return };
        batch.released = self.last.0;
        batch.samples = 0;
        batch.bytes = 0;
        self.timers.stop(TIMER_BATCH);
    }

    /// The last number that may be pushed.
    pub(super) fn released(&self) -> i64 {
        match &self.batch {
            Some(batch) => batch.released.min(self.last.0),
            None => self.last.0,
        }
    }

    /// Decides whether the sample just kept is held back.
    pub(super) fn hold(&mut self, now: Instant) {
        if self.batch.is_none() {
            return;
        }
        let room = self.batch_bytes_max();
        let samples_max = self.depth.min(self.samples_max);
        let (Some(batch), Some(newest)) = (&mut self.batch, self.history.iter().next_back()) else {
            return;
        };
        let bytes = share_of(newest);
        if batch.samples == 0 {
            self.timers.set(TIMER_BATCH, now.after(batch.budget));
        }
        batch.samples = batch.samples.saturating_add(1);
        batch.bytes = batch.bytes.saturating_add(bytes);
        if newest.is_end()
            || batch.budget == Duration::ZERO
            || !is_small(newest)
            || self.readers.is_empty()
            || batch.samples >= samples_max
            // One more like it would not fit.
            || batch.bytes.saturating_add(bytes) > room
        {
            self.flush();
        }
    }

    /// Sends the released samples from `number` on that fit one datagram, to
    /// every group. `None`: there are not two of them; false: the burst is over.
    pub(super) fn push_batch(
        &mut self,
        number: i64,
        now: Instant,
        out: &mut Outbox,
        left: &mut Left,
    ) -> Option<bool> {
        self.batch.as_ref()?;
        if self.cursor.batch == 0 {
            self.cursor.batch = self.end_of_batch(number)?;
            let all = number..=self.cursor.batch;
            let asks = all.filter(|number| self.decide_to_ask(now, *number));
            self.cursor.ask = Some(asks.count() > 0);
        }
        while self.cursor.group < self.groups.len() {
            if left.is_over(out) {
                return Some(false);
            }
            self.push_batch_to(number, now, out, left);
            self.cursor.group.tally();
        }
        self.cursor = Cursor::at(self.cursor.batch.saturating_add(1));
        if self.reliable_readers == 0 || self.filtered_readers > 0 {
            self.prune();
        }
        Some(true)
    }

    /// The last of the consecutive small samples that fit a datagram.
    fn end_of_batch(&self, number: i64) -> Option<i64> {
        let mut room = self.batch_bytes_max();
        let mut end = number;
        let released = self.released();
        for (expected, change) in
            (number..=released).zip(self.history.iter_from(SequenceNumber(number)))
        {
            let follows = is_small(change) && change.sequence.0 == expected;
            let Some(rest) = room.checked_sub(share_of(change)).filter(|_| follows) else {
                break;
            };
            room = rest;
            end = expected;
        }
        (end > number).then_some(end)
    }

    fn batch_bytes_max(&self) -> usize {
        let datagram = match self.is_near() {
            true => usize::from(self.config.fragment_size.same_host),
            false => self.config.datagram_bytes_max,
        };
        datagram.saturating_sub(FRAME_BYTES)
    }

    /// One datagram for the cursor's group.
    fn push_batch_to(&mut self, number: i64, now: Instant, out: &mut Outbox, left: &mut Left) {
        let (at, end) = (self.cursor.group, self.cursor.batch);
        let ask = self.cursor.ask == Some(true);
        let prelude = self.prelude(at, number);
        let heartbeat = (ask || end == self.released())
            .then(|| self.heartbeat(at, !ask, end))
            .filter(|_| prelude.is_none());
        let writer = self.config.guid;
        let (history, readers, stats) = (&self.history, &self.readers, &mut self.stats);
        let Some(group) = self.groups.get_mut(at).filter(|group| group.readers > 0) else {
            return;
        };
        let mut message = out.begin(writer.prefix, &group.route.locators, usize::from(u16::MAX));
        message.info_destination(group.prefix);
        if let Some(heartbeat) = &prelude {
            stats
                .heartbeats
                .tally_by(u64::from(message.heartbeat(heartbeat)));
        }
        let mut sent = 0;
        for number in number..=end {
            let change = history.find(SequenceNumber(number));
            let due = |change: &&Change| is_due(change, group, at, readers, now);
            let Some(change) = change.filter(due) else {
                group.skip(number);
                continue;
            };
            let reader = change.only_for.map_or(group.sole, |only| only.entity);
            if let Some(run) = group.skipped.take() {
                let (first, last) = (SequenceNumber(run.first), SequenceNumber(run.last));
                message.gap(&Gap::range(reader, writer.entity, first, last));
                stats.gaps.tally();
            }
            message.info_timestamp(change.source_timestamp);
            add_data(&mut message, writer.entity, reader, change);
            sent.tally();
        }
        if sent == 0 {
            return;
        }
        stats.samples_sent.tally_by(sent);
        let heartbeat = heartbeat.filter(|_| group.reliable > 0);
        if let Some(heartbeat) = &heartbeat {
            stats
                .heartbeats
                .tally_by(u64::from(message.heartbeat(heartbeat)));
        }
        left.finish(message, stats);
        if ask && heartbeat.is_some() {
            self.note_asked(now, at, end);
        }
    }
}

/// Whether it can share a datagram.
fn is_small(change: &Change) -> bool {
    change.payload.len() <= Outbox::INLINE_PAYLOAD_MAX_BYTES
}

/// What it takes of a datagram at most.
fn share_of(change: &Change) -> usize {
    let gap = match change.only_for {
        Some(_) => GAP_BYTES,
        None => 0,
    };
    data_bytes(change)
        .saturating_add(INFO_TS_BYTES)
        .saturating_add(gap)
}
