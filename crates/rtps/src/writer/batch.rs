//! Batch: the samples that a writer holds for LATENCY_BUDGET, and what each takes
//! of a datagram. [`super::batching`] fills and sends it.

use super::data_encoder::data_bytes;
use crate::change::WriterChange;
use crate::outbox::Outbox;
use crate::time::Duration;

/// The held samples.
#[derive(Debug)]
pub(super) struct Batch {
    /// The latency budget; zero holds nothing.
    pub budget: Duration,
    /// All numbers up to this may be sent.
    pub released: i64,
    /// Samples held since then.
    pub samples: usize,
    pub bytes: usize,
}

impl Batch {
    /// A batch for writers with a budget. All numbers up to `released` may be sent.
    pub fn new(budget: Duration, released: i64) -> Option<Self> {
        (budget > Duration::ZERO).then_some(Self {
            budget,
            released,
            samples: 0,
            bytes: 0,
        })
    }

    /// Releases everything up to `last`.
    pub fn release(&mut self, last: i64) {
        self.released = last;
        self.samples = 0;
        self.bytes = 0;
    }

    /// Holds one more sample. Returns whether another of its size would not fit
    /// into `space`.
    pub fn hold(&mut self, bytes: usize, space: usize) -> bool {
        self.samples = self.samples.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes.saturating_add(bytes) > space
    }
}

/// INFO_TS before a sample, and a GAP before a directed write.
const INFO_TS_BYTES: usize = 12;

const GAP_BYTES: usize = 32;

/// The header, INFO_DST, a GAP and two heartbeats.
pub(super) const FRAME_BYTES: usize = 160;

/// Whether it can share a datagram.
pub(super) fn is_small(change: &WriterChange) -> bool {
    change.payload.len() <= Outbox::INLINE_PAYLOAD_MAX_BYTES
}

/// The largest share of a datagram that it takes, bytes.
pub(super) fn datagram_share(change: &WriterChange) -> usize {
    let gap = match change.directed_to {
        Some(_) => GAP_BYTES,
        None => 0,
    };
    data_bytes(change)
        .saturating_add(INFO_TS_BYTES)
        .saturating_add(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_when_one_more_sample_of_the_size_would_not_fit() {
        let mut batch = Batch::new(Duration::from_millis(1), 0).unwrap();
        assert!(!batch.hold(100, 300));
        assert!(!batch.hold(100, 300));
        assert!(batch.hold(100, 300));
        batch.release(3);
        assert_eq!((batch.samples, batch.released), (0, 3));
        assert!(!batch.hold(100, 300));
    }

    #[test]
    fn a_writer_without_a_budget_has_no_batch() {
        assert!(Batch::new(Duration::ZERO, 0).is_none());
    }
}
