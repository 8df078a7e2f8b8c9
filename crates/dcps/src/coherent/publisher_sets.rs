//! Coherent sets of a publisher with one or several writers: what each sample is
//! marked with (DDS 1.4 §2.2.2.4.1.10–11; RTPS 2.5 §8.7.5, §8.7.6).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::id::EntityId;
use pteros_rtps::qos::Presentation;
use pteros_rtps::seq::SequenceNumber;
use thiserror::Error;

/// Maximum nesting of sets.
pub const NESTING_MAX: usize = 1_000;

/// Why a group or its presentation refuses an operation.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
pub enum GroupError {
    /// The group has no coherent access.
    #[error("the group is not coherent, so it has no sets; create it with presentation.coherent")]
    NotCoherent,
    /// More ends than begins.
    #[error("no coherent set is open; begin one first")]
    NotBegun,
    /// Sets are nested too deep.
    #[error("coherent sets are nested {max} deep, the limit; end some")]
    NestedTooDeep {
        /// The limit of nesting.
        max: usize,
    },
    /// The members of a group are fixed while a set is open.
    #[error("a coherent set is open; create publishers before it begins or after it has ended")]
    SetOpen,
}

pteros_msg::debug_as_display!(GroupError);

/// The open set and the group sequence number of one publisher.
pub struct PublisherSets {
    presentation: Presentation,
    last_group_sequence: i64,
    /// How often a set was begun and not ended.
    depth: usize,
    /// The group sequence number of the open set's first sample, if it has one.
    open_set: Option<i64>,
    digest: [u8; 4],
}

impl PublisherSets {
    /// No set is open, nothing was written.
    pub fn new(presentation: Presentation) -> Self {
        Self {
            presentation,
            last_group_sequence: 0,
            depth: 0,
            open_set: None,
            digest: [0; 4],
        }
    }

    /// Whether a set is open.
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// The last group sequence number.
    pub fn last_group_sequence(&self) -> i64 {
        self.last_group_sequence
    }

    /// The digest of the publisher's writers, see [`writer_set_digest`].
    pub fn digest(&self) -> [u8; 4] {
        self.digest
    }

    /// Replaces the writers of the publisher.
    pub fn set_writers(&mut self, writers: &BTreeSet<EntityId>) {
        self.digest = writer_set_digest(writers);
    }

    /// Begins a coherent set; within an open one only counts.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::NestedTooDeep`].
    pub fn begin(&mut self) -> Result<(), GroupError> {
        if !self.presentation.coherent {
            return Err(GroupError::NotCoherent);
        }
        if self.depth >= NESTING_MAX {
            return Err(GroupError::NestedTooDeep { max: NESTING_MAX });
        }
        self.depth += 1;
        Ok(())
    }

    /// Ends the last [`PublisherSets::begin`]. Returns the mark of the set's end, if
    /// this was the outermost and the set has samples.
    ///
    /// # Errors
    /// [`GroupError::NotBegun`].
    pub fn end(&mut self) -> Result<Option<CoherentMark>, GroupError> {
        self.depth = self.depth.checked_sub(1).ok_or(GroupError::NotBegun)?;
        if self.depth > 0 {
            return Ok(None);
        }
        let Some(set) = self.open_set.take() else {
            return Ok(None);
        };
        let of_group = self.presentation.is_of_group();
        let group_sequence = self.last_group_sequence.saturating_add(1);
        if of_group {
            self.last_group_sequence = group_sequence;
        }
        Ok(Some(CoherentMark {
            kind: CoherentMarkKind::SetEnd,
            group_sequence: of_group.then_some(SequenceNumber(group_sequence)),
            group_coherent_set: of_group.then_some(SequenceNumber(set)),
            writer_group_digest: of_group.then_some(self.digest),
            coherent_set: None,
        }))
    }

    /// The mark of a writer's next sample: `open_set_begin` is its first sample in
    /// the open set, `next` its next sequence number. Allocates if there is one.
    pub fn coherent_mark(
        &self,
        open_set_begin: Option<SequenceNumber>,
        next: SequenceNumber,
    ) -> Option<Box<CoherentMark>> {
        let of_group = self.presentation.is_of_group();
        let in_set = self.is_open();
        if !of_group && !in_set {
            return None;
        }
        let group_sequence = self.last_group_sequence.saturating_add(1);
        let set = self.open_set.unwrap_or(group_sequence);
        Some(Box::new(CoherentMark {
            kind: CoherentMarkKind::CacheChange,
            coherent_set: in_set.then_some(open_set_begin.unwrap_or(next)),
            group_sequence: of_group.then_some(SequenceNumber(group_sequence)),
            group_coherent_set: (in_set && of_group).then_some(SequenceNumber(set)),
            writer_group_digest: of_group.then_some(self.digest),
        }))
    }

    /// The marked sample will be written. Returns its group sequence number.
    pub fn commit(&mut self) -> i64 {
        self.last_group_sequence = self.last_group_sequence.saturating_add(1);
        if self.is_open() {
            self.open_set.get_or_insert(self.last_group_sequence);
        }
        self.last_group_sequence
    }
}

/// The digest of a set of writers (RTPS 2.5 §9.3.2, GroupDigest_t): the first bytes
/// of the MD5 of their ids as big-endian CDR, in ascending order; zero for none.
pub fn writer_set_digest(writers: &BTreeSet<EntityId>) -> [u8; 4] {
    if writers.is_empty() {
        return [0; 4];
    }
    let count = u32::try_from(writers.len()).unwrap_or(u32::MAX);
    let mut hash = md5::Context::new();
    hash.consume(count.to_be_bytes());
    for writer in writers {
        hash.consume(writer.to_bytes());
    }
    let [a, b, c, d, ..]: [u8; 16] = hash.finalize().into();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_set_of_writers_does_not_depend_on_their_order() {
        let id = |n| EntityId::new([0, 0, n], EntityId::KIND_WRITER_NO_KEY);
        assert_eq!(writer_set_digest(&BTreeSet::new()), [0; 4]);
        let one = writer_set_digest(&[id(1), id(2)].into());
        assert_eq!(one, writer_set_digest(&[id(2), id(1), id(2)].into()));
        assert_ne!(one, writer_set_digest(&[id(1)].into()));
        // MD5 of 00000001 00000103.
        assert_eq!(writer_set_digest(&[id(1)].into()), [0xc8, 0x80, 0x2b, 0xef]);
    }

    #[test]
    fn the_outermost_end_of_a_set_with_samples_has_a_mark() {
        let mut sets = PublisherSets::new(Presentation {
            access_scope: 2,
            coherent: true,
            ordered: false,
        });
        assert_eq!(sets.end(), Err(GroupError::NotBegun));
        sets.begin().unwrap();
        assert_eq!(sets.end(), Ok(None), "an empty set");
        sets.begin().unwrap();
        sets.begin().unwrap();
        assert_eq!((sets.commit(), sets.commit()), (1, 2));
        assert_eq!(sets.end(), Ok(None), "a nested set");
        let mark = sets.end().unwrap().unwrap();
        assert_eq!(mark.group_sequence, Some(SequenceNumber(3)));
        assert_eq!(mark.group_coherent_set, Some(SequenceNumber(1)));
        assert_eq!((sets.is_open(), sets.last_group_sequence()), (false, 3));
    }

    #[test]
    fn nesting_has_a_limit() {
        let mut sets = PublisherSets::new(Presentation {
            coherent: true,
            ..Presentation::default()
        });
        for _ in 0..NESTING_MAX {
            sets.begin().unwrap();
        }
        let max = NESTING_MAX;
        assert_eq!(sets.begin(), Err(GroupError::NestedTooDeep { max }));
    }
}
