//! HEARTBEAT submessage: the sequence numbers that a writer has (RTPS 2.5 §8.3.8.6,
//! §9.4.5.7).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, WireError, begin_submessage, end_submessage};
use crate::id::EntityId;
use crate::seq::SequenceNumber;

/// The range of sequence numbers that a writer can send or retransmit.
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
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The lowest available number.
    pub first: SequenceNumber,
    /// The highest available number; `first - 1` when there is none.
    pub last: SequenceNumber,
    /// Grows with each new HEARTBEAT, so that repeats are recognised.
    pub count: u32,
    /// The final flag: the writer requests no ACKNACK in answer.
    pub is_final: bool,
    /// The application asserted the writer's liveliness.
    pub liveliness: bool,
    /// The group sequence number of the writer's publisher, if PRESENTATION has
    /// group scope.
    pub group_info: Option<GroupSequenceInfo>,
}

/// Group sequence info of a publisher (the G flag, RTPS 2.5 §8.3.8.6.3).
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// | last number of the publisher  | first it has of those         |
/// +---------------+---------------+---------------+---------------+
/// | last it has of those          | writers       | secured ones  |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSequenceInfo {
    /// The last group sequence number assigned by the publisher.
    pub current: SequenceNumber,
    /// The first of those numbers that this writer can still send.
    pub first: SequenceNumber,
    /// The last one; `first - 1` when there is none.
    pub last: SequenceNumber,
    /// Digest of the GUIDs of the publisher's writers.
    pub writer_group_digest: [u8; 4],
}

impl GroupSequenceInfo {
    /// Reads the fields; invalid values count as absent.
    fn parse(at: &mut Cursor<'_>) -> Option<Self> {
        let info = Self {
            current: at.positive_sequence().ok()?,
            first: at.positive_sequence().ok()?,
            last: at.sequence().ok()?,
            writer_group_digest: at.array().ok()?,
        };
        let secured: [u8; 4] = at.array().ok()?;
        let _ = secured;
        let ordered = info.last >= info.first.previous() && info.current >= info.last;
        ordered.then_some(info)
    }
}

impl Heartbeat {
    /// Size on the wire with its header, bytes.
    pub const SIZE_BYTES: usize = 32;
    const FLAG_FINAL: u8 = 0x02;
    const FLAG_LIVELINESS: u8 = 0x04;
    const FLAG_GROUP: u8 = 0x08;

    /// Reads the body.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        let mut heartbeat = Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            first: at.positive_sequence()?,
            last: at.sequence()?,
            count: at.u32()?,
            is_final: flags & Self::FLAG_FINAL != 0,
            liveliness: flags & Self::FLAG_LIVELINESS != 0,
            group_info: None,
        };
        if flags & Self::FLAG_GROUP != 0 {
            heartbeat.group_info = GroupSequenceInfo::parse(&mut at);
        }
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
        if self.group_info.is_some() {
            flags |= Self::FLAG_GROUP;
        }
        let at = begin_submessage(out, id::HEARTBEAT, flags);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.first);
        write_sequence(out, self.last);
        out.extend_from_slice(&self.count.to_le_bytes());
        if let Some(group) = &self.group_info {
            for number in [group.current, group.first, group.last] {
                write_sequence(out, number);
            }
            out.extend_from_slice(&group.writer_group_digest);
            // No digest of secured writers: this stack secures no writer group.
            out.extend_from_slice(&[0; 4]);
        }
        end_submessage(out, at, 0);
    }
}
