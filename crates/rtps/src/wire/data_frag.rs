//! DATA_FRAG submessage: consecutive fragments of one change (RTPS 2.5 §8.3.8.3,
//! §9.4.5.5).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, InlineQos, InlineQosHead, WireError, begin_submessage};
use crate::id::EntityId;
use crate::seq::{FragmentNumber, SequenceNumber};

/// Received fragments. The fields are consistent: the fragments exist in a sample
/// of that size, and `payload` holds exactly their bytes.
///
/// ```text
/// 0               2               4               8
/// +---------------+---------------+---------------+
/// | extra flags   | to inline QoS | reader        |
/// +---------------+---------------+---------------+
/// | writer                        | sequence …
/// +-------------------------------+---------------+
/// | … number                      | first fragment|
/// +---------------+---------------+---------------+
/// | fragments     | fragment size | sample size   |
/// +---------------+---------------+---------------+
/// | inline QoS, if flag Q (0x02) …
/// | fragments …                      flag K (0x04): key only
/// +-------------------------------+  flag N (0x08): not in the usual form
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataFrag<'a> {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer, of the participant that the receiver state names as source.
    pub writer: EntityId,
    /// The change's number.
    pub sequence: SequenceNumber,
    /// The first fragment in this submessage, counted from 1.
    pub first_fragment: FragmentNumber,
    /// The number of fragments in this submessage, at least one.
    pub fragment_count: u16,
    /// Size of every fragment but the sample's last, bytes; at least one.
    pub fragment_size: u16,
    /// Size of the whole sample with its encapsulation header, bytes.
    pub sample_size: u32,
    /// Its inline QoS parameters.
    pub inline_qos: InlineQos<'a>,
    /// The fragments, without padding.
    pub payload: &'a [u8],
    /// The sample is the key of the instance.
    pub key_only: bool,
}

impl<'a> DataFrag<'a> {
    /// Reads the body.
    pub fn parse(flags: u8, body: &'a [u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        at.u16()?;
        let to_inline_qos = usize::from(at.u16()?);
        let after_head = to_inline_qos
            .checked_sub(FIXED_BYTES)
            .ok_or(WireError::InvalidLength)?;
        let mut fragment = Self {
            reader: at.entity_id()?,
            writer: at.entity_id()?,
            sequence: at.positive_sequence()?,
            first_fragment: FragmentNumber(at.u32()?),
            fragment_count: at.u16()?,
            fragment_size: at.u16()?,
            sample_size: at.u32()?,
            inline_qos: InlineQos::default(),
            payload: &[],
            key_only: flags & FLAG_KEY != 0,
        };
        at.bytes(after_head)?;
        if flags & FLAG_INLINE_QOS != 0 {
            fragment.inline_qos = InlineQos::parse(&mut at)?;
        }
        let expected = fragment.payload_bytes()?;
        let payload = at.rest();
        if payload.len() > expected.saturating_add(PADDING_MAX_BYTES) {
            return Err(WireError::InvalidFragment);
        }
        fragment.payload = payload.get(..expected).ok_or(WireError::Truncated)?;
        Ok(fragment)
    }

    /// How many fragments the sample has.
    pub fn fragments_total(&self) -> u32 {
        match self.fragment_size {
            0 => 0,
            size => self.sample_size.div_ceil(u32::from(size)),
        }
    }

    /// The offset of the payload in the sample, bytes.
    pub fn offset_bytes(&self) -> usize {
        (self.first_fragment.0.saturating_sub(1) as usize)
            .saturating_mul(usize::from(self.fragment_size))
    }

    /// The size of the fragments in bytes, or the error if no such fragments exist.
    fn payload_bytes(&self) -> Result<usize, WireError> {
        let size = u64::from(self.fragment_size);
        let sample = u64::from(self.sample_size);
        let first = u64::from(self.first_fragment.0);
        let count = u64::from(self.fragment_count);
        if size == 0 || size > sample || first == 0 || count == 0 {
            return Err(WireError::InvalidFragment);
        }
        // The numbers have 32 and 16 bits, so in 64 nothing saturates.
        let before = first.saturating_sub(1);
        let last = before.saturating_add(count);
        if last > sample.div_ceil(size) {
            return Err(WireError::InvalidFragment);
        }
        let from = before.saturating_mul(size);
        let to = last.saturating_mul(size).min(sample);
        usize::try_from(to.saturating_sub(from)).map_err(|_| WireError::InvalidFragment)
    }
}

/// The fields written before the bytes of a DATA_FRAG.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataFragHead<'a> {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer, of the participant that the receiver state names as source.
    pub writer: EntityId,
    /// The change's number.
    pub sequence: SequenceNumber,
    /// The first fragment in this submessage, counted from 1.
    pub first_fragment: FragmentNumber,
    /// The number of fragments in this submessage.
    pub fragment_count: u16,
    /// Size of every fragment but the sample's last, bytes.
    pub fragment_size: u16,
    /// Size of the whole sample with its encapsulation header, bytes.
    pub sample_size: u32,
    /// Its inline QoS parameters.
    pub inline_qos: InlineQosHead<'a>,
    /// The sample is the key of the instance.
    pub key_only: bool,
}

impl DataFragHead<'_> {
    /// Size on the wire with the submessage header and without payload, bytes.
    pub fn size_bytes(&self) -> usize {
        self.inline_qos.size_bytes().saturating_add(36)
    }

    /// Appends everything before the fragments. Returns the offset of the
    /// submessage, to fill in its length later.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> usize {
        let mut flags = 0;
        if !self.inline_qos.is_empty() {
            flags |= FLAG_INLINE_QOS;
        }
        if self.key_only {
            flags |= FLAG_KEY;
        }
        let at = begin_submessage(out, id::DATA_FRAG, flags);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(FIXED_BYTES as u16).to_le_bytes());
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.sequence);
        out.extend_from_slice(&self.first_fragment.0.to_le_bytes());
        out.extend_from_slice(&self.fragment_count.to_le_bytes());
        out.extend_from_slice(&self.fragment_size.to_le_bytes());
        out.extend_from_slice(&self.sample_size.to_le_bytes());
        self.inline_qos.write(out);
        at
    }
}

/// Everything between the offset field and the inline QoS.
const FIXED_BYTES: usize = 28;
/// A fragment whose size is no multiple of four may be padded.
const PADDING_MAX_BYTES: usize = 3;
const FLAG_INLINE_QOS: u8 = 0x02;
const FLAG_KEY: u8 = 0x04;
