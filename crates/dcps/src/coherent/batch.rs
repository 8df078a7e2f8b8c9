//! Batches of samples that become ready together, and losses by reader.

use alloc::collections::{BTreeMap, VecDeque};

use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use crate::sample::queued_sample::QueuedSample;

/// The index of a reader outside of groups.
pub const SOLE_READER: usize = 0;

/// A set, or a single sample, with the reader of each sample.
pub struct ReadyBatch {
    /// Whether its samples form a coherent set.
    pub is_set: bool,
    /// When it became ready.
    pub ready_at: Instant,
    /// Reader index and sample, in order.
    pub items: VecDeque<(usize, QueuedSample)>,
}

/// Sets and samples that one reader of the subscriber missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderLosses {
    /// Sets dropped, because something was missing or they were too large.
    pub sets: u64,
    /// Samples received and dropped with them.
    pub samples: u64,
    /// Samples older than a released one.
    pub late: u64,
}

/// Recent losses by reader.
#[derive(Default)]
pub struct DroppedByReader(BTreeMap<usize, ReaderLosses>);

impl DroppedByReader {
    pub(super) fn add_set(&mut self, reader: usize, samples: u64) {
        self.0.entry(reader).or_default().sets += 1;
        self.add_samples(reader, samples);
    }

    pub(super) fn add_samples(&mut self, reader: usize, samples: u64) {
        self.0.entry(reader).or_default().samples += samples;
    }

    pub(super) fn add_late(&mut self, reader: usize) {
        self.0.entry(reader).or_default().late += 1;
    }

    /// Takes the losses of a reader and resets them.
    pub fn take(&mut self, reader: usize) -> ReaderLosses {
        self.0.remove(&reader).unwrap_or_default()
    }
}

/// A writer as one reader of the subscriber is matched with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MatchKey {
    /// The reader's index in the subscriber.
    pub reader: usize,
    /// GUID of the remote writer.
    pub writer: Guid,
}

/// The known way in which a writer announces its publisher, from the match on.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupDialect {
    /// It announces its position even when it is idle.
    pub sends_group_info: bool,
    /// It is one of ours, so its sets name the writers of the publisher as we do.
    pub names_writers: bool,
}
