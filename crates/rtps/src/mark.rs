//! Marks: what a change says about the coherent set it belongs to and its
//! place among the changes of its publisher (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! A set is named by the number of its first change: at its writer, and where
//! the publisher presents its writers as a group, by the first group sequence
//! number too. It ends with a change without payload, or with the next one that
//! does not belong to it. Changes outside of sets and groups carry no mark.

use alloc::vec::Vec;

use crate::seq::SequenceNumber;
use crate::wire::{InlineQos, pid, write_number, write_parameter};

/// What kind of change carries the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum MarkKind {
    /// A sample, or the ending of an instance.
    #[default]
    Change,
    /// No sample: the set ends here.
    End,
    /// No change at all: everything up to this number is settled, and the
    /// publisher is at this place. Never on the wire.
    Settled,
    /// No sample: a filter of the writer's side kept one back.
    Filtered,
}

/// The mark of one change. Numbers are positive, or absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Mark {
    /// What carries it.
    pub kind: MarkKind,
    /// The set's first number at this writer (PID_COHERENT_SET).
    pub set: Option<SequenceNumber>,
    /// The change's number within the publisher (PID_GROUP_SEQ_NUM).
    pub group_sequence: Option<SequenceNumber>,
    /// The set's first number within the publisher (PID_GROUP_COHERENT_SET).
    pub group_set: Option<SequenceNumber>,
    /// Which writers the publisher has: the digest of PID_WRITER_GROUP_INFO.
    pub writers: Option<[u8; 4]>,
}

impl Mark {
    /// The mark of a change that came with this inline QoS. What is not
    /// positive or has another length counts as absent.
    pub fn read(inline_qos: &InlineQos<'_>, is_nothing: bool) -> Option<Self> {
        let mut mark = Self::default();
        let mut unknown_set = false;
        for parameter in inline_qos.parameters().iter() {
            let mut value = parameter.value;
            match parameter.id {
                pid::COHERENT_SET => {
                    let number = value.sequence().ok();
                    unknown_set = number == Some(SequenceNumber::UNKNOWN);
                    mark.set = number.filter(|number| number.is_valid());
                }
                pid::GROUP_SEQ_NUM => mark.group_sequence = value.positive_sequence().ok(),
                pid::GROUP_COHERENT_SET => mark.group_set = value.positive_sequence().ok(),
                pid::WRITER_GROUP_INFO => mark.writers = value.array().ok(),
                _ => {}
            }
        }
        if is_nothing {
            mark.kind = match unknown_set || mark.group_set.is_some() {
                true => MarkKind::End,
                false => MarkKind::Filtered,
            };
        }
        (mark != Self::default()).then_some(mark)
    }

    /// Whether it goes with a change that readers without sets need not see.
    pub fn ends(&self) -> bool {
        self.kind == MarkKind::End
    }

    /// Size of its parameters on the wire, bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let parameters = [
            (self.written_set().is_some(), 12),
            (self.group_sequence.is_some(), 12),
            (self.group_set.is_some(), 12),
            (self.writers.is_some(), 8),
        ];
        let written = parameters.iter().filter(|(is_there, _)| *is_there);
        written.map(|(_, bytes)| bytes).sum()
    }

    /// The end of a writer's own set says that there is none; that of a group's
    /// set leaves the parameter out, which means the same.
    fn written_set(&self) -> Option<SequenceNumber> {
        match self.kind {
            MarkKind::End if self.group_set.is_none() => Some(SequenceNumber::UNKNOWN),
            MarkKind::End => None,
            _ => self.set,
        }
    }

    /// Appends its parameters.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (id, number) in [
            (pid::COHERENT_SET, self.written_set()),
            (pid::GROUP_SEQ_NUM, self.group_sequence),
            (pid::GROUP_COHERENT_SET, self.group_set),
        ] {
            if let Some(number) = number {
                write_number(out, id, number);
            }
        }
        if let Some(writers) = self.writers {
            write_parameter(out, pid::WRITER_GROUP_INFO, &writers);
        }
    }
}
