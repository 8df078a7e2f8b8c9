//! GAP submessage: sequence numbers that are irrelevant to the reader (RTPS 2.5
//! §8.3.8.4, §9.4.5.6).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, SequenceSet, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;
use crate::seq::SequenceNumber;

/// Irrelevant numbers in two parts: the range from `start` up to but not including
/// the set's base, and the numbers in the set. The range may have any length, so a
/// receiver keeps it as a range.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | reader        | writer        |
/// +---------------+---------------+
/// | start                         |
/// +-------------------------------+
/// | sequence set, 12 to 44 bytes …
/// +-------------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The first irrelevant number.
    pub start: SequenceNumber,
    /// The end of the range, and further irrelevant numbers.
    pub list: SequenceSet,
}

impl Gap {
    /// The irrelevant range `first..=last` and nothing else.
    pub fn range(
        reader: EntityId,
        writer: EntityId,
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Self {
        Self {
            reader,
            writer,
            start: first,
            list: SequenceSet::empty(last.next()),
        }
    }

    /// Reads the body. The fields of a group (G flag) and the count of
    /// filtered changes (F flag) are skipped. A start above the set's base is
    /// no error: the range is then empty.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        let gap = Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            start: at.positive_sequence()?,
            list: SequenceSet::parse(&mut at)?,
        };
        if !gap.list.base().is_valid() {
            return Err(WireError::InvalidSet);
        }
        Ok(gap)
    }

    /// Appends the submessage.
    pub fn write(&self, out: &mut Vec<u8>) {
        let at = begin_submessage(out, id::GAP, 0);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.start);
        self.list.write(out);
        end_submessage(out, at, 0);
    }
}
