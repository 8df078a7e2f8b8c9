//! ACKNACK submessage: acknowledged and missing samples (RTPS 2.5 §8.3.8.1,
//! §9.4.5.3).

use alloc::vec::Vec;

use super::submessage_header::id;
use super::{Cursor, SequenceSet, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;

/// The state of a reader: acknowledgement and retransmission request in one.
///
/// Every sequence number below the set's base is acknowledged. The numbers in the
/// set are requested (negative acknowledgement).
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | reader        | writer        |
/// +---------------+---------------+
/// | sequence set, 12 to 44 bytes …
/// +---------------+
/// | count         |   flags: F (0x02) no answer is needed
/// +---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckNack {
    /// The reader that sends it.
    pub reader: EntityId,
    /// The writer it addresses.
    pub writer: EntityId,
    /// The acknowledged base and the missing numbers.
    pub state: SequenceSet,
    /// Grows with each new ACKNACK of the reader, so that repeats are recognised.
    pub count: u32,
    /// The final flag: the reader requests no HEARTBEAT in answer.
    pub is_final: bool,
}

impl AckNack {
    const FLAG_FINAL: u8 = 0x02;
    /// The size of a submessage whose set is empty.
    pub const EMPTY_SIZE_BYTES: usize = 28;

    /// Reads the body.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        Ok(Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            state: SequenceSet::parse(&mut at)?,
            count: at.u32()?,
            is_final: flags & Self::FLAG_FINAL != 0,
        })
    }

    /// Appends the submessage.
    pub fn write(&self, out: &mut Vec<u8>) {
        let flags = if self.is_final { Self::FLAG_FINAL } else { 0 };
        let at = begin_submessage(out, id::ACKNACK, flags);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        self.state.write(out);
        out.extend_from_slice(&self.count.to_le_bytes());
        end_submessage(out, at, 0);
    }
}
