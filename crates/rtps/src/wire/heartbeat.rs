//! HEARTBEAT: which changes a writer has (RTPS 2.5 §8.3.8.6, §9.4.5.7).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage::id;
use super::{Cursor, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;
use crate::seq::SequenceNumber;

/// The range a writer can still send.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | reader        | writer        |
/// +---------------+---------------+
/// | first number                  |
/// +-------------------------------+
/// | last number                   |
/// +---------------+---------------+
/// | count         |   flags: F (0x02) no answer is needed,
/// +---------------+          L (0x04) the writer is alive
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The reader it is meant for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that tells.
    pub writer: EntityId,
    /// The lowest number it has.
    pub first: SequenceNumber,
    /// The highest number it has; `first - 1` when it has none.
    pub last: SequenceNumber,
    /// Grows with each new HEARTBEAT, so repeats are recognised.
    pub count: u32,
    /// The writer wants no ACKNACK in answer.
    pub is_final: bool,
    /// The application asserted the writer's liveliness.
    pub liveliness: bool,
}

impl Heartbeat {
    /// Size on the wire with its header, bytes.
    pub const SIZE_BYTES: usize = 32;
    const FLAG_FINAL: u8 = 0x02;
    const FLAG_LIVELINESS: u8 = 0x04;

    /// Reads the body. The fields of a group (G flag) are skipped.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        let heartbeat = Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            first: at.positive_sequence()?,
            last: at.sequence()?,
            count: at.u32()?,
            is_final: flags & Self::FLAG_FINAL != 0,
            liveliness: flags & Self::FLAG_LIVELINESS != 0,
        };
        if heartbeat.last < heartbeat.first.previous() {
            return Err(WireError::InvalidSequence);
        }
        Ok(heartbeat)
    }

    /// Appends the submessage.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        if self.is_final {
            flags |= Self::FLAG_FINAL;
        }
        if self.liveliness {
            flags |= Self::FLAG_LIVELINESS;
        }
        let at = begin_submessage(out, id::HEARTBEAT, flags);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.first);
        write_sequence(out, self.last);
        out.extend_from_slice(&self.count.to_le_bytes());
        end_submessage(out, at, 0);
    }
}
