//! What a hub has done and has, for whoever asks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Refused;
use crate::pool::Exhausted;

/// A snapshot of a hub's counters. Those of messages only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShmCounts {
    /// Messages sent.
    pub sent: u64,
    /// Of these, with a body that stayed where it was.
    pub named: u64,
    /// Of these, with a body that was copied into a chunk first.
    pub copied: u64,
    /// Messages received.
    pub received: u64,
    /// Doorbells rung because a receiver slept.
    pub rung: u64,
    /// Not sent: the link was down.
    pub refused_down: u64,
    /// Not sent: the ring was full.
    pub refused_full: u64,
    /// Not sent: longer than the ring.
    pub refused_too_long: u64,
    /// Not sent: the reader holds half of the pool.
    pub refused_share: u64,
    /// Not sent: the reader holds as many chunks as a link lends.
    pub refused_loans: u64,
    /// Not sent: a body outside the pool found no chunk.
    pub refused_exhausted: u64,
    /// Not sent: a segment could not be handed over just then.
    pub refused_segment: u64,
    /// [`Hub::chunk`](crate::Hub::chunk) found none.
    pub exhausted: u64,
    /// Links that were made.
    pub linked: u64,
    /// Handshakes that failed, here or there.
    pub handshakes_failed: u64,
    /// Links closed because the peer was broken.
    pub broken: u64,
    /// Links that are up.
    pub links: usize,
    /// Links that are down and still hold chunks of ours.
    pub lingering: usize,
    /// Handshakes under way.
    pub pending: usize,
    /// Chunks lent, counted once per link.
    pub loans: usize,
    /// Chunks that somebody holds, here or there.
    pub chunks_used: usize,
    /// Chunks that nobody holds.
    pub chunks_free: usize,
    /// Segments of the pool.
    pub segments: usize,
    /// Bytes of all segments, whether touched or not.
    pub segment_bytes: usize,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub sent: Counter,
    pub named: Counter,
    pub copied: Counter,
    pub received: Counter,
    pub rung: Counter,
    refused: [Counter; 7],
    pub exhausted: Counter,
    pub linked: Counter,
    pub handshakes_failed: Counter,
    pub broken: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn refuse(&self, refused: Refused) {
        let index = match refused {
            Refused::Down => 0,
            Refused::Full => 1,
            Refused::TooLong | Refused::Exhausted(Exhausted::TooLarge { .. }) => 2,
            Refused::Share => 3,
            Refused::Loans => 4,
            Refused::Exhausted(_) => 5,
            Refused::Segment => 6,
        };
        self.refused[index].add();
    }

    /// The counters; what is there now is for the hub to fill in.
    pub(crate) fn snapshot(&self) -> ShmCounts {
        let refused = |index: usize| self.refused[index].get();
        ShmCounts {
            sent: self.sent.get(),
            named: self.named.get(),
            copied: self.copied.get(),
            received: self.received.get(),
            rung: self.rung.get(),
            refused_down: refused(0),
            refused_full: refused(1),
            refused_too_long: refused(2),
            refused_share: refused(3),
            refused_loans: refused(4),
            refused_exhausted: refused(5),
            refused_segment: refused(6),
            exhausted: self.exhausted.get(),
            linked: self.linked.get(),
            handshakes_failed: self.handshakes_failed.get(),
            broken: self.broken.get(),
            ..ShmCounts::default()
        }
    }
}
