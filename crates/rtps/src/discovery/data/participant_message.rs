//! ParticipantMessageData: liveliness assertions of a participant, the data of WLP
//! (RTPS 2.5 §8.4.13.5, §9.6.3.1).

use alloc::vec::Vec;
use bytes::Bytes;

use super::encapsulation::{CDR_LE, parse_cdr};
use super::limits;
use crate::id::GuidPrefix;
use crate::qos::Liveliness;
use crate::wire::WireError;

/// One message, in plain CDR.
///
/// ```text
/// 0               4
/// +---------------+
/// | GUID prefix (12 bytes)
/// +---------------+
/// | kind (octets) |
/// +---------------+---- … ----+
/// | length        | data      |
/// +---------------+---- … ----+
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParticipantMessageData {
    /// The participant that asserts.
    pub prefix: GuidPrefix,
    /// The kind of message. The highest bit marks a vendor-specific kind.
    pub kind: [u8; 4],
    /// Additional data; empty in liveliness assertions.
    pub data: Vec<u8>,
}

impl ParticipantMessageData {
    /// All automatic writers of the participant are alive.
    pub const KIND_AUTOMATIC: [u8; 4] = [0, 0, 0, 1];
    /// All manual-by-participant writers of the participant are alive.
    pub const KIND_MANUAL: [u8; 4] = [0, 0, 0, 2];

    /// An assertion. A writer asserts `ManualByTopic` itself; here it counts as
    /// manual.
    pub fn liveliness(prefix: GuidPrefix, kind: Liveliness) -> Self {
        Self {
            prefix,
            kind: match kind {
                Liveliness::Automatic => Self::KIND_AUTOMATIC,
                Liveliness::ManualByParticipant | Liveliness::ManualByTopic => Self::KIND_MANUAL,
            },
            data: Vec::new(),
        }
    }

    /// The asserted liveliness kind; `None` for another kind of message.
    pub fn liveliness_kind(&self) -> Option<Liveliness> {
        match self.kind {
            Self::KIND_AUTOMATIC => Some(Liveliness::Automatic),
            Self::KIND_MANUAL => Some(Liveliness::ManualByParticipant),
            _ => None,
        }
    }

    /// The key: prefix and kind.
    pub fn key_hash(&self) -> [u8; 16] {
        let mut key = [0; 16];
        let (prefix, kind) = key.split_at_mut(12);
        prefix.copy_from_slice(&self.prefix.0);
        kind.copy_from_slice(&self.kind);
        key
    }

    /// Reads a payload, encapsulation included. Data over 1 KiB is left out.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut at = parse_cdr(payload)?;
        let prefix = at.guid_prefix()?;
        let kind = at.array()?;
        let length = at.u32()? as usize;
        let data = at.bytes(length)?;
        let kept = if length > limits::USER_DATA_BYTES {
            &[]
        } else {
            data
        };
        Ok(Self {
            prefix,
            kind,
            data: kept.to_vec(),
        })
    }

    /// The payload, encapsulation included.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.data.len().saturating_add(24));
        out.extend_from_slice(&CDR_LE.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.prefix.0);
        out.extend_from_slice(&self.kind);
        let length = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.data);
        Bytes::from(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_liveliness_assertion_survives_also_with_the_encapsulation_of_fast_dds() {
        let prefix = GuidPrefix([7; 12]);
        let ours = ParticipantMessageData::liveliness(prefix, Liveliness::Automatic).encode();
        let mut theirs = ours.to_vec();
        theirs[1] = 0x03;
        for payload in [&ours[..], &theirs[..]] {
            let read = ParticipantMessageData::parse(payload).unwrap();
            assert_eq!(read.prefix, prefix);
            assert_eq!(read.liveliness_kind(), Some(Liveliness::Automatic));
        }
    }
}
