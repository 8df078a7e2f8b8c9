//! Protects what one sender sends: a counter as vector, a new session before
//! it or the key wears out. Appends to a buffer of the caller's; once its
//! capacity is there and the session's key is known nothing is allocated.

use super::framing::{
    RECEIVER_BYTES, RECEIVERS, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX,
    nonce,
};
use super::keys::SessionKey;
use super::{KeyMaterial, Mac, SessionId};
use crate::key::RandomnessFailed;

/// What is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The payload of a sample.
    Payload,
    /// A submessage.
    Submessage,
    /// All submessages of a message, after its RTPS header.
    Message,
}

/// Why something was not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Too long for a submessage's length.
    #[error("{0} bytes are too many for one protected submessage; fragment the sample")]
    TooLong(usize),
    /// Codes for more receivers than are accepted.
    #[error("{0} receivers; a protected submessage has codes for at most 2048")]
    TooManyReceivers(usize),
    /// No randomness for a new session.
    #[error(transparent)]
    Randomness(#[from] RandomnessFailed),
    /// The cipher refused.
    #[error("the cipher refused to work")]
    Cipher,
}

/// One sender's keys at work.
pub struct Sealer {
    material: KeyMaterial,
    session: SessionId,
    key: SessionKey,
    vector: u64,
    blocks: u64,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer({:?}, vector {})", self.material, self.vector)
    }
}

impl Sealer {
    /// Begins a session of this material.
    pub fn new(material: KeyMaterial) -> Result<Self, RandomnessFailed> {
        // Not a guess of the last run's sessions: keys may outlive a process.
        let mut session = [0; 4];
        aws_lc_rs::rand::fill(&mut session).map_err(|_| RandomnessFailed)?;
        let session = SessionId(session);
        let key = material.session_key(session);
        Ok(Self {
            material,
            session,
            key,
            vector: 0,
            blocks: 0,
        })
    }

    /// The keys.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Bytes that protection adds at most, receivers' codes included.
    pub fn overhead_bytes(layer: Layer, receivers: usize) -> usize {
        let framing = match layer {
            Layer::Payload => 0,
            // Three submessage headers, and padding.
            Layer::Submessage | Layer::Message => 15,
        };
        let codes = receivers.saturating_mul(RECEIVER_BYTES);
        44_usize.saturating_add(framing).saturating_add(codes)
    }

    /// Appends the protected form of `plain` to `out`. `receivers` are those
    /// whose codes are added; a payload has none. After an error `out` is as it
    /// was.
    pub fn seal(
        &mut self,
        layer: Layer,
        plain: &[u8],
        receivers: &[&KeyMaterial],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let start = out.len();
        let sealed = self.seal_into(layer, plain, receivers, out);
        if sealed.is_err() {
            out.truncate(start);
        }
        sealed
    }

    fn seal_into(
        &mut self,
        layer: Layer,
        plain: &[u8],
        receivers: &[&KeyMaterial],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if receivers.len() > RECEIVERS {
            return Err(SealError::TooManyReceivers(receivers.len()));
        }
        self.renew(plain.len())?;
        self.vector = self.vector.saturating_add(1);
        let vector = self.vector.to_be_bytes();
        let nonce = nonce(self.session, vector);
        let encrypts = self.material.kind.encrypts();
        let (prefix, postfix) = match layer {
            Layer::Payload => (None, None),
            Layer::Submessage => (Some(SEC_PREFIX), Some(SEC_POSTFIX)),
            Layer::Message => (Some(SRTPS_PREFIX), Some(SRTPS_POSTFIX)),
        };
        if let Some(id) = prefix {
            submessage(out, id, HEADER_BYTES)?;
        }
        out.extend(self.material.kind.octets());
        out.extend(self.material.sender_key_id.0);
        out.extend(self.session.0);
        out.extend(vector);
        let padding = match (encrypts, prefix) {
            (true, Some(_)) => {
                let padding = plain.len().wrapping_neg() & 3;
                let length = plain.len().saturating_add(4).saturating_add(padding);
                submessage(out, SEC_BODY, length)?;
                padding
            }
            _ => 0,
        };
        if encrypts {
            let length = u32::try_from(plain.len()).map_err(|_| SealError::TooLong(plain.len()))?;
            out.extend(length.to_be_bytes());
        }
        let at = out.len();
        out.extend_from_slice(plain);
        let content = out.get_mut(at..).unwrap_or_default();
        let mac = match encrypts {
            true => self.key.seal(nonce, content),
            false => self.key.sign(nonce, content),
        };
        let mac = mac.ok_or(SealError::Cipher)?;
        out.extend([0; 3].iter().take(padding));
        if let Some(id) = postfix {
            let codes = receivers.len().saturating_mul(RECEIVER_BYTES);
            submessage(out, id, codes.saturating_add(20))?;
        }
        out.extend(mac);
        self.codes(layer, receivers, nonce, &mac, out)
    }

    /// The codes of single receivers: of the common code, with their keys.
    fn codes(
        &self,
        layer: Layer,
        receivers: &[&KeyMaterial],
        nonce: [u8; 12],
        mac: &Mac,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let receivers = match layer {
            Layer::Payload => &[],
            Layer::Submessage | Layer::Message => receivers,
        };
        let counted = receivers.iter().filter(|one| one.receiver_key_id.is_some());
        let count = u32::try_from(counted.count()).unwrap_or_default();
        out.extend(count.to_be_bytes());
        for receiver in receivers {
            let id = receiver.receiver_key_id;
            let key = receiver.receiver_session_key(self.session);
            if let (Some(id), Some(key)) = (id, key) {
                out.extend(id.0);
                out.extend(key.sign(nonce, mac).ok_or(SealError::Cipher)?);
            }
        }
        Ok(())
    }

    /// A new session before the cipher's limits (NIST SP 800-38D §8.3).
    fn renew(&mut self, bytes: usize) -> Result<(), SealError> {
        let blocks = u64::try_from(bytes / 16).unwrap_or(u64::MAX);
        self.blocks = self.blocks.saturating_add(blocks).saturating_add(1);
        if self.blocks < SESSION_BLOCKS && self.vector < SESSION_MESSAGES {
            return Ok(());
        }
        // The next number, so that no session comes twice.
        let session = u32::from_be_bytes(self.session.0).wrapping_add(1);
        self.session = SessionId(session.to_be_bytes());
        self.key = self.material.session_key(self.session);
        self.vector = 0;
        self.blocks = 0;
        Ok(())
    }
}

/// A submessage's header: little-endian flags, as all others of ours.
fn submessage(out: &mut Vec<u8>, id: u8, length: usize) -> Result<(), SealError> {
    let length = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
    let [low, high] = length.to_le_bytes();
    out.extend([id, 1, low, high]);
    Ok(())
}

const HEADER_BYTES: usize = 20;
/// Of one session: 2^32 messages are allowed with vectors by lot; ours count.
const SESSION_MESSAGES: u64 = 1 << 32;
/// 2^36 blocks of 16 bytes.
const SESSION_BLOCKS: u64 = 1 << 36;
