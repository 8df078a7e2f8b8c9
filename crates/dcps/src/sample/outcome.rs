//! Outcomes of inserting a sample into a history cache, and of taking one out of it.

use super::queued_sample::QueuedSample;

/// Outcome of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertOutcome {
    /// It can be taken.
    Queued,
    /// The end of an instance can be taken.
    InstanceEndQueued,
    /// It was filtered, held or too late; it counts as received from its publisher.
    Withheld,
    /// Another publisher owns the topic or the instance.
    Outranked,
    /// The instance limit is reached, or the instance cannot be identified.
    Rejected,
}

/// The outcome of inserting samples, for notifications.
#[derive(Default)]
pub struct ArrivalSummary {
    /// Samples that can be taken.
    pub samples: u64,
    /// Whether the end of an instance can be taken.
    pub has_instance_end: bool,
    /// Whether a sample was rejected ([`InsertOutcome::Rejected`]).
    pub rejected: bool,
    /// The total of missed deadlines, if it has changed.
    pub deadlines_missed: Option<u64>,
}

impl ArrivalSummary {
    /// Adds the outcome of one insertion.
    #[inline]
    pub fn add(&mut self, outcome: InsertOutcome) {
        match outcome {
            InsertOutcome::Queued => self.samples += 1,
            InsertOutcome::InstanceEndQueued => self.has_instance_end = true,
            InsertOutcome::Rejected => self.rejected = true,
            InsertOutcome::Withheld | InsertOutcome::Outranked => {}
        }
    }
}

/// The outcome of taking a sample.
#[derive(Default)]
pub struct PoppedSample {
    /// The sample.
    pub item: Option<QueuedSample>,
    /// The queue was full and no longer is.
    pub freed_space: bool,
    /// There is enough space to fetch held-back samples.
    pub resume: bool,
}

/// Compilers move values up to this size without calling `memcpy`, which stalls on
/// bytes that were just written: ten times slower.
const _: () = assert!(size_of::<PoppedSample>() <= 128);
