//! Coherent set mark: the coherent set of a change and its group sequence number,
//! for PRESENTATION (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! A coherent set is identified by the sequence number of its first change. With
//! group scope, the first group sequence number identifies it, too. It ends with a
//! change without payload, or with the next change of another set. Changes outside
//! of sets and groups have no mark.

use crate::seq::SequenceNumber;

/// The kind of change with the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum CoherentMarkKind {
    /// A sample, a dispose or an unregister.
    #[default]
    CacheChange,
    /// No sample: the end of the set.
    SetEnd,
    /// No change: everything up to this number is delivered or irrelevant, with the
    /// publisher's group sequence number. Never on the wire.
    GroupHeartbeat,
    /// No sample: a filter on the writer side rejected one.
    Filtered,
}

/// The mark of one change. Numbers are positive, or absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct CoherentMark {
    /// The kind of change.
    pub kind: CoherentMarkKind,
    /// The set's first number at this writer (PID_COHERENT_SET).
    pub coherent_set: Option<SequenceNumber>,
    /// The group sequence number of the change (PID_GROUP_SEQ_NUM).
    pub group_sequence: Option<SequenceNumber>,
    /// The set's first group sequence number (PID_GROUP_COHERENT_SET).
    pub group_coherent_set: Option<SequenceNumber>,
    /// Digest of the publisher's writers: that of PID_WRITER_GROUP_INFO.
    pub writer_group_digest: Option<[u8; 4]>,
}

impl CoherentMark {
    /// Whether it marks a set end, which readers without coherent access need not
    /// get.
    pub fn is_set_end(&self) -> bool {
        self.kind == CoherentMarkKind::SetEnd
    }

    /// Size of its parameters on the wire, bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let parameters = [
            (self.written_set().is_some(), 12),
            (self.group_sequence.is_some(), 12),
            (self.group_coherent_set.is_some(), 12),
            (self.writer_group_digest.is_some(), 8),
        ];
        let written = parameters.iter().filter(|(is_there, _)| *is_there);
        written.map(|(_, bytes)| bytes).sum()
    }

    /// The end of a writer's own set writes an unknown number. That of a group's
    /// set omits the parameter, with the same meaning.
    pub(crate) fn written_set(&self) -> Option<SequenceNumber> {
        match self.kind {
            CoherentMarkKind::SetEnd if self.group_coherent_set.is_none() => {
                Some(SequenceNumber::UNKNOWN)
            }
            CoherentMarkKind::SetEnd => None,
            _ => self.coherent_set,
        }
    }
}
