//! Blocked-write queue: samples that wait for space in a KEEP_ALL reader of this
//! process.
//!
//! It holds the history of publishers for a reader that joined late, and the last
//! samples of KEEP_LAST publishers, as a publisher of another process would hold
//! them. Samples enter the reader as others are taken. New samples come after them:
//! KEEP_ALL publishers block (back-pressure), best-effort samples are lost as in
//! any full queue.
//!
//! The queue holds no more than the matched publishers keep. Beyond a KEEP_LAST
//! publisher's depth its oldest sample is dropped and counted as lost. One end of
//! each kind may wait per publisher and instance. When a publisher leaves, its
//! samples here are dropped and counted as lost.

use alloc::collections::VecDeque;

use pteros_msg::key::KeyHash;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::reader::Reader;
use pteros_rtps::time::Instant;

use super::reader_cache::ReaderCache;
use crate::sample::outcome::ArrivalSummary;
use crate::sample::queued_sample::QueuedSample;

/// The waiting samples, oldest first.
#[derive(Default)]
pub struct BlockedWrites(VecDeque<QueuedSample>);

/// Policy for a local sample when the reader has no space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullQueuePolicy {
    /// The publisher has waited for space already. The sample queues behind blocked
    /// ones.
    WriterWaited,
    /// The sample is held among the newest so many of its publisher and instance.
    HoldNewest(usize),
    /// The sample is dropped.
    Drop,
}

impl FullQueuePolicy {
    /// The policy for a match; `reliable` means that losses are repaired.
    pub fn for_match(writer: &EndpointQos, reliable: bool) -> Self {
        match writer.history {
            _ if !reliable => Self::Drop,
            History::KeepAll => Self::WriterWaited,
            History::KeepLast(depth) => {
                let of_each = writer.resource_limits.max_samples_per_instance;
                let depth = depth.min(of_each.unwrap_or(depth)).max(1);
                Self::HoldNewest(usize::try_from(depth).unwrap_or(usize::MAX))
            }
        }
    }
}

impl BlockedWrites {
    /// Drops the oldest samples of a publisher and instance beyond `depth`. Returns
    /// how many.
    fn trim(&mut self, writer: Guid, key: Option<KeyHash>, depth: usize) -> u64 {
        let is_of_it = |item: &QueuedSample| {
            let of = item.instance.as_ref().map(|keyed| keyed.info.key);
            item.meta.publisher == writer && of == key && !item.is_end()
        };
        let count = self.0.iter().filter(|item| is_of_it(item)).count();
        let surplus = count.saturating_sub(depth);
        let mut left = surplus;
        self.0.retain(|item| {
            let goes = left > 0 && is_of_it(item);
            left -= usize::from(goes);
            !goes
        });
        surplus as u64
    }

    fn push(&mut self, item: QueuedSample) {
        if item.is_end() && self.has_same_instance_end(&item) {
            return;
        }
        self.0.push_back(item);
    }

    /// Whether the same end of the same instance waits, with nothing of the
    /// instance after it.
    fn has_same_instance_end(&self, end: &QueuedSample) -> bool {
        let about = |item: &QueuedSample| {
            let keyed = item.instance.as_deref()?;
            Some((item.meta.publisher, keyed.info.key, keyed.kind))
        };
        let Some(wanted) = about(end) else {
            return false;
        };
        let of_it = self.0.iter().rev().filter_map(about);
        let of_it = of_it.filter(|(writer, key, _)| (*writer, *key) == (wanted.0, wanted.1));
        let mut ends = of_it.take_while(|(_, _, kind)| *kind != ChangeKind::Alive);
        ends.any(|(_, _, kind)| kind == wanted.2)
    }
}

impl ReaderCache {
    /// Queues a kept sample if there is no space or others wait. Otherwise returns
    /// it.
    pub fn block_if_full(&mut self, item: QueuedSample) -> Option<QueuedSample> {
        let key = item.instance.as_ref().map(|keyed| keyed.info.key);
        let has_space = item.is_end() || !self.is_queue_full_for(key.as_ref());
        if self.blocked_writes.is_none() && has_space {
            return Some(item);
        }
        self.blocked_writes.get_or_insert_default().push(item);
        // The reader that makes space asks for it.
        self.hold_back(false);
        None
    }

    /// Returns the sample if there is space and nothing waits. Otherwise queues or
    /// drops it, and returns how many samples are lost.
    #[inline]
    pub fn enqueue_or_drop(
        &mut self,
        item: QueuedSample,
        when_full: FullQueuePolicy,
    ) -> Result<QueuedSample, u64> {
        let (writer, key) = (item.meta.publisher, item.instance.as_ref());
        let key = key.map(|keyed| keyed.info.key);
        let has_space = when_full == FullQueuePolicy::WriterWaited || item.is_end();
        if self.blocked_writes.is_none() && (has_space || !self.is_queue_full_for(key.as_ref())) {
            return Ok(item);
        }
        if when_full == FullQueuePolicy::Drop && !item.is_end() {
            return Err(1);
        }
        let waiting = self.blocked_writes.get_or_insert_default();
        waiting.push(item);
        let lost = match when_full {
            FullQueuePolicy::HoldNewest(depth) => waiting.trim(writer, key, depth),
            FullQueuePolicy::WriterWaited | FullQueuePolicy::Drop => 0,
        };
        // The reader that makes space asks for it.
        self.hold_back(false);
        Err(lost)
    }

    /// Inserts waiting samples as far as there is space.
    #[inline]
    pub fn deliver_unblocked(
        &mut self,
        now: Instant,
        machine: &mut Reader,
        arrived: &mut ArrivalSummary,
    ) {
        while let Some(item) = self.pop_deliverable() {
            // An expired sample was never received, as if it had waited at its
            // publisher.
            if item.expires_at > now && !self.is_duplicate_sample(&item) {
                arrived.add(self.insert(now, machine, item));
            }
        }
    }

    fn pop_deliverable(&mut self) -> Option<QueuedSample> {
        let first = self.blocked_writes.as_ref()?.0.front();
        let Some(first) = first else {
            self.blocked_writes = None;
            return None;
        };
        let key = first.instance.as_ref().map(|keyed| keyed.info.key);
        if !first.is_end() && self.is_queue_full_for(key.as_ref()) {
            self.hold_back(false);
            return None;
        }
        self.blocked_writes.as_mut()?.0.pop_front()
    }

    /// Drops the samples of a publisher. Returns how many.
    pub fn remove_blocked_of(&mut self, writer: Guid) -> u64 {
        let Some(BlockedWrites(items)) = self.blocked_writes.as_deref_mut() else {
            return 0;
        };
        let samples =
            |items: &VecDeque<QueuedSample>| items.iter().filter(|item| !item.is_end()).count();
        let before = samples(items);
        items.retain(|item| item.meta.publisher != writer);
        let lost = before.saturating_sub(samples(items)) as u64;
        if items.is_empty() {
            self.blocked_writes = None;
        }
        lost
    }
}
