//! One writer's coherent sets as one reader receives them (RTPS 2.5 §8.7.6).
//!
//! Samples and ends of sets enter in sequence order, complete parts come out. A
//! part is complete when every sequence number from the first of the set to its end
//! has arrived, except for samples that the writer's content filter held back. Any
//! other missing sample spoils it.

use alloc::vec::Vec;

use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};

use crate::sample::queued_sample::QueuedSample;

/// A received change, in sequence order.
pub(crate) struct ReceivedChange {
    /// The sequence number of the change.
    pub sequence: i64,
    /// Its coherent set and group sequence number.
    pub mark: CoherentMark,
    /// The sample, the end of an instance, both or nothing.
    pub items: Vec<QueuedSample>,
}

pub(crate) enum StreamOutput {
    /// A sample outside of sets, with its group sequence number if it has one.
    Single(Option<i64>, QueuedSample),
    /// Everything that arrived of one set.
    Part(SetPart),
}

/// One writer's part of a set.
pub(crate) struct SetPart {
    /// The first sequence number of the set: in the group where sets span several
    /// writers, otherwise at the writer.
    pub set: i64,
    /// The group sequence number of the set's end, if that has arrived.
    pub end: Option<i64>,
    /// The digest of the publisher's writers.
    pub writers: Option<[u8; 4]>,
    /// The samples, each with its group sequence number.
    pub items: Vec<(i64, QueuedSample)>,
    /// How many samples arrived, those that did not fit included.
    pub received: u64,
    /// Whether nothing is missing.
    pub is_whole: bool,
}

/// The state of one writer's stream.
pub(crate) struct WriterStream {
    /// Whether sets span all writers of the publisher.
    spans_group: bool,
    /// The most samples of one set that are held.
    samples_max: usize,
    /// The last sequence number that is known.
    last: i64,
    /// From this sequence number on nothing is missing, except for filtered
    /// samples.
    complete_from: i64,
    /// From this group sequence number on nothing was missed.
    pub group_complete_from: i64,
    open: Option<SetPart>,
    open_bytes: usize,
}

/// Bytes of one set that are held for one reader, as in the reorder buffer.
pub(crate) const SET_BYTES_MAX: usize = 64 << 20;

impl WriterStream {
    /// Creates an empty stream; `samples_max` is what the reader can keep of one
    /// set.
    pub fn new(spans_group: bool, samples_max: usize) -> Self {
        Self {
            spans_group,
            samples_max,
            last: 0,
            complete_from: 0,
            group_complete_from: 0,
            open: None,
            open_bytes: 0,
        }
    }

    /// Current sizes and their limits.
    pub fn held(&self) -> [(&'static str, usize, usize); 2] {
        let open = self.open.as_ref().map_or(&[][..], |open| &open.items);
        let bytes = open.iter().map(|(_, item)| item.weight()).sum();
        [
            // A sample may arrive together with the end of its instance.
            (
                "samples of an open set",
                open.len(),
                self.samples_max.saturating_add(1),
            ),
            ("bytes of an open set", bytes, SET_BYTES_MAX),
        ]
    }

    /// Everything up to a sequence number is settled, and the publisher is at
    /// `place`.
    pub fn note_settled(&mut self, sequence: i64, group_sequence: i64) {
        if self.last < sequence {
            self.note_gap(group_sequence);
            self.last = sequence;
            self.complete_from = sequence.saturating_add(1);
        }
    }

    fn note_gap(&mut self, group_sequence: i64) {
        self.group_complete_from = group_sequence;
        if let Some(open) = &mut self.open {
            open.is_whole = false;
            open.items.clear();
        }
    }

    /// Adds the next change. Releases at most one finished part and one sample.
    pub fn add_change(&mut self, change: ReceivedChange, mut out: impl FnMut(StreamOutput)) {
        let ReceivedChange {
            sequence,
            mark,
            items,
        } = change;
        let group_sequence = mark.group_sequence.map_or(sequence, |n| n.0);
        if sequence != self.last.saturating_add(1) {
            self.note_gap(group_sequence);
            self.complete_from = sequence;
        }
        self.last = sequence;
        match mark.kind {
            CoherentMarkKind::Filtered | CoherentMarkKind::GroupHeartbeat => {}
            CoherentMarkKind::SetEnd => self.end_set(&mark, group_sequence, out),
            CoherentMarkKind::CacheChange => match self.set_of(&mark, sequence) {
                Some(set) => {
                    if self.open.as_ref().is_some_and(|open| open.set != set) {
                        self.close(&mut out);
                    }
                    self.add_samples(set, &mark, group_sequence, items);
                }
                None => {
                    self.close(&mut out);
                    for item in items {
                        out(StreamOutput::Single(mark.group_sequence.map(|n| n.0), item));
                    }
                }
            },
        }
    }

    /// The set of a sample. A set that claims to begin after its own sample is
    /// invalid, and the sample belongs to no set.
    fn set_of(&self, mark: &CoherentMark, sequence: i64) -> Option<i64> {
        let set = mark.coherent_set.filter(|set| set.0 <= sequence)?;
        if !self.spans_group {
            return Some(set.0);
        }
        let group_sequence = mark.group_sequence?;
        let set = mark
            .group_coherent_set
            .filter(|set| *set <= group_sequence)?;
        Some(set.0)
    }

    fn add_samples(
        &mut self,
        set: i64,
        mark: &CoherentMark,
        group_sequence: i64,
        items: Vec<QueuedSample>,
    ) {
        // A content filter may have held its first samples back.
        let has_beginning = mark
            .coherent_set
            .is_some_and(|first| first.0 >= self.complete_from);
        let samples_max = self.samples_max;
        let open = self.open.get_or_insert_with(|| SetPart {
            set,
            end: None,
            writers: None,
            items: Vec::new(),
            received: 0,
            is_whole: has_beginning,
        });
        open.received += items.iter().filter(|item| !item.is_end()).count() as u64;
        let weight: usize = items.iter().map(QueuedSample::weight).sum();
        self.open_bytes = if open.items.is_empty() {
            weight
        } else {
            self.open_bytes.saturating_add(weight)
        };
        if open.items.len() >= samples_max || self.open_bytes > SET_BYTES_MAX {
            open.is_whole = false;
            open.items.clear();
        }
        if open.is_whole {
            open.items
                .extend(items.into_iter().map(|item| (group_sequence, item)));
        }
    }

    /// The following change ends the set. A set of a group must have had an
    /// explicit end: that is lost, and perhaps samples with it.
    fn close(&mut self, mut out: impl FnMut(StreamOutput)) {
        if let Some(mut part) = self.open.take() {
            part.is_whole &= !self.spans_group;
            out(StreamOutput::Part(part));
        }
    }

    fn end_set(
        &mut self,
        mark: &CoherentMark,
        group_sequence: i64,
        mut out: impl FnMut(StreamOutput),
    ) {
        if !self.spans_group {
            self.close(out);
            return;
        }
        let Some(set) = mark.group_coherent_set.map(|set| set.0) else {
            return;
        };
        if self.open.as_ref().is_some_and(|open| open.set != set) {
            self.close(&mut out);
        }
        let covered = self.group_complete_from < set;
        let mut part = self.open.take().unwrap_or(SetPart {
            set,
            end: None,
            writers: None,
            items: Vec::new(),
            received: 0,
            is_whole: covered,
        });
        part.end = Some(group_sequence);
        part.writers = mark.writer_group_digest;
        out(StreamOutput::Part(part));
    }

    /// The writer is gone: its open set stays incomplete.
    pub fn abandon(&mut self) -> Option<SetPart> {
        let mut part = self.open.take()?;
        part.is_whole = false;
        Some(part)
    }
}
