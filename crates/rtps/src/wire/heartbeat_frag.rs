//! HEARTBEAT_FRAG submessage: the fragments of one change that a writer has (RTPS
//! 2.5 §8.3.8.7, §9.4.5.8).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;
use crate::seq::{FragmentNumber, SequenceNumber};

/// Fragments 1 to `last_fragment` of one change are available for request.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | reader        | writer        |
/// +---------------+---------------+
/// | sequence number               |
/// +---------------+---------------+
/// | last fragment | count         |
/// +---------------+---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatFrag {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The change.
    pub sequence: SequenceNumber,
    /// The highest available fragment.
    pub last_fragment: FragmentNumber,
    /// Grows with each new HEARTBEAT_FRAG, so repeats are recognised.
    pub count: u32,
}

impl HeartbeatFrag {
    /// Size on the wire with its header, bytes.
    pub const SIZE_BYTES: usize = 28;

    /// Reads the body.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        let heartbeat = Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            sequence: at.positive_sequence()?,
            last_fragment: FragmentNumber(at.u32()?),
            count: at.u32()?,
        };
        if heartbeat.last_fragment.0 == 0 {
            return Err(WireError::InvalidFragment);
        }
        Ok(heartbeat)
    }

    /// Appends the submessage.
    pub fn write(&self, out: &mut Vec<u8>) {
        let at = begin_submessage(out, id::HEARTBEAT_FRAG, 0);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.sequence);
        out.extend_from_slice(&self.last_fragment.0.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        end_submessage(out, at, 0);
    }
}
