//! Coherent set mark: the coherent set of a change and its group sequence number,
//! for PRESENTATION (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! A coherent set is identified by the sequence number of its first change. With
//! group scope, the first group sequence number identifies it, too. It ends with a
//! change without payload, or with the next change of another set. Changes outside
//! of sets and groups have no mark.

use alloc::vec::Vec;

use crate::seq::SequenceNumber;
use crate::wire::{InlineQos, pid, write_number, write_parameter};

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
    /// The mark in the inline QoS of a change. A number that is not positive, or
    /// has another length, counts as absent.
    pub fn read(inline_qos: &InlineQos<'_>, is_nothing: bool) -> Option<Self> {
        let mut mark = Self::default();
        let mut unknown_set = false;
        for parameter in inline_qos.parameters().iter() {
            let mut value = parameter.value;
            match parameter.id {
                pid::COHERENT_SET => {
                    let number = value.sequence().ok();
                    unknown_set = number == Some(SequenceNumber::UNKNOWN);
                    mark.coherent_set = number.filter(|number| number.is_valid());
                }
                pid::GROUP_SEQ_NUM => mark.group_sequence = value.positive_sequence().ok(),
                pid::GROUP_COHERENT_SET => mark.group_coherent_set = value.positive_sequence().ok(),
                pid::WRITER_GROUP_INFO => mark.writer_group_digest = value.array().ok(),
                _ => {}
            }
        }
        if is_nothing {
            mark.kind = if unknown_set || mark.group_coherent_set.is_some() {
                CoherentMarkKind::SetEnd
            } else {
                CoherentMarkKind::Filtered
            };
        }
        (mark != Self::default()).then_some(mark)
    }

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
    fn written_set(&self) -> Option<SequenceNumber> {
        match self.kind {
            CoherentMarkKind::SetEnd if self.group_coherent_set.is_none() => {
                Some(SequenceNumber::UNKNOWN)
            }
            CoherentMarkKind::SetEnd => None,
            _ => self.coherent_set,
        }
    }

    /// Appends its parameters.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (id, number) in [
            (pid::COHERENT_SET, self.written_set()),
            (pid::GROUP_SEQ_NUM, self.group_sequence),
            (pid::GROUP_COHERENT_SET, self.group_coherent_set),
        ] {
            if let Some(number) = number {
                write_number(out, id, number);
            }
        }
        if let Some(writers) = self.writer_group_digest {
            write_parameter(out, pid::WRITER_GROUP_INFO, &writers);
        }
    }
}
