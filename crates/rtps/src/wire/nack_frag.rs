//! NACK_FRAG submessage: the fragments of one change that a reader misses (RTPS 2.5
//! §8.3.8.12, §9.4.5.14).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, FragmentSet, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;
use crate::seq::SequenceNumber;

/// A request for the fragments in the set.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | reader        | writer        |
/// +---------------+---------------+
/// | sequence number               |
/// +-------------------------------+
/// | fragment set, 8 to 40 bytes …
/// +---------------+
/// | count         |
/// +---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackFrag {
    /// The reader that sends it.
    pub reader: EntityId,
    /// The writer it addresses.
    pub writer: EntityId,
    /// The change.
    pub sequence: SequenceNumber,
    /// The missing fragments.
    pub state: FragmentSet,
    /// Grows with each new NACK_FRAG, so repeats are recognised.
    pub count: u32,
}

impl NackFrag {
    /// Reads the body.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        Ok(Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            sequence: at.positive_sequence()?,
            state: FragmentSet::parse(&mut at)?,
            count: at.u32()?,
        })
    }

    /// Appends the submessage.
    pub fn write(&self, out: &mut Vec<u8>) {
        let at = begin_submessage(out, id::NACK_FRAG, 0);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.sequence);
        self.state.write(out);
        out.extend_from_slice(&self.count.to_le_bytes());
        end_submessage(out, at, 0);
    }
}
