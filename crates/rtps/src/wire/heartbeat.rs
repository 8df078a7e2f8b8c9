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
    /// Where the writer's publisher is, if its writers are presented as one.
    pub group: Option<GroupPlace>,
}

/// How far a publisher has come, as one of its writers tells (the G flag).
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// | last number of the publisher  | first it has of those         |
/// +---------------+---------------+---------------+---------------+
/// | last it has of those          | writers       | secured ones  |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupPlace {
    /// The last number given within the publisher.
    pub current: SequenceNumber,
    /// The first of those numbers that this writer can still send.
    pub first: SequenceNumber,
    /// The last one; `first - 1` when it has none.
    pub last: SequenceNumber,
    /// Which writers the publisher has.
    pub writers: [u8; 4],
}

impl GroupPlace {
    /// Reads the fields; nonsense counts as absent.
    fn parse(at: &mut Cursor<'_>) -> Option<Self> {
        let place = Self {
            current: at.positive_sequence().ok()?,
            first: at.positive_sequence().ok()?,
            last: at.sequence().ok()?,
            writers: at.array().ok()?,
        };
        let secured: [u8; 4] = at.array().ok()?;
        let _ = secured;
        let ordered = place.last >= place.first.previous() && place.current >= place.last;
        ordered.then_some(place)
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
            group: None,
        };
        if flags & Self::FLAG_GROUP != 0 {
            heartbeat.group = GroupPlace::parse(&mut at);
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
        if self.group.is_some() {
            flags |= Self::FLAG_GROUP;
        }
        let at = begin_submessage(out, id::HEARTBEAT, flags);
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.first);
        write_sequence(out, self.last);
        out.extend_from_slice(&self.count.to_le_bytes());
        if let Some(group) = &self.group {
            for number in [group.current, group.first, group.last] {
                write_sequence(out, number);
            }
            out.extend_from_slice(&group.writers);
            // No writer of ours is secured.
            out.extend_from_slice(&[0; 4]);
        }
        end_submessage(out, at, 0);
    }
}
