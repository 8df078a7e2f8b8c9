//! Protects what one sender sends: a counter as vector, a new session before
//! it or the key wears out. Appends to a buffer of the caller's; once its
//! capacity is there and the session's key is known nothing is allocated.

use std::sync::Arc;

use super::framing::{
    RECEIVER_BYTES, RECEIVERS, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX,
    nonce,
};
use super::keys::SessionKey;
use super::{KeyMaterial, Receiver, SessionId};
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
    key: Arc<SessionKey>,
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
        let key = Arc::new(material.session_key(session));
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
    pub fn seal<'r>(
        &mut self,
        layer: Layer,
        plain: &[u8],
        receivers: impl IntoIterator<Item = &'r Receiver, IntoIter: Clone>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let start = out.len();
        let begun = self.begin(layer, plain.len(), out)?;
        out.extend_from_slice(plain);
        let sealed = begun.end(receivers, out);
        if sealed.is_err() {
            out.truncate(start);
        }
        sealed
    }

    /// Appends what stands before something of at most `bytes_max` bytes that is
    /// to be protected where it lies: append it, then [`Begun::end`].
    pub fn begin(
        &mut self,
        layer: Layer,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<Begun, SealError> {
        self.renew(bytes_max)?;
        self.vector = self.vector.saturating_add(1);
        let vector = self.vector.to_be_bytes();
        let (prefix, postfix) = match layer {
            Layer::Payload => (None, None),
            Layer::Submessage => (Some(SEC_PREFIX), Some(SEC_POSTFIX)),
            Layer::Message => (Some(SRTPS_PREFIX), Some(SRTPS_POSTFIX)),
        };
        if let Some(id) = prefix {
            submessage(out, id, HEADER_BYTES)?;
        }
        out.extend_from_slice(&self.material.kind.octets());
        out.extend_from_slice(&self.material.sender_key_id.0);
        out.extend_from_slice(&self.session.0);
        out.extend_from_slice(&vector);
        let encrypts = self.material.kind.encrypts();
        if encrypts {
            if prefix.is_some() {
                submessage(out, SEC_BODY, 0)?;
            }
            // Its length, once that is known.
            out.extend_from_slice(&[0; 4]);
        }
        Ok(Begun {
            key: Arc::clone(&self.key),
            session: self.session,
            nonce: nonce(self.session, vector),
            encrypts,
            postfix,
            at: out.len(),
        })
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
        self.key = Arc::new(self.material.session_key(self.session));
        self.vector = 0;
        self.blocks = 0;
        Ok(())
    }
}

/// Something that is being protected where it lies, at the end of a buffer.
#[must_use = "nothing is protected before the end"]
pub struct Begun {
    key: Arc<SessionKey>,
    session: SessionId,
    nonce: [u8; 12],
    encrypts: bool,
    /// The submessage that follows; a payload has none.
    postfix: Option<u8>,
    /// Where it begins.
    at: usize,
}

impl Begun {
    /// Protects all that was appended to `out` since, and appends what stands
    /// after it. `receivers` are those whose codes are added; a payload has none.
    /// After an error `out` is good for nothing behind where this was begun.
    pub fn end<'r>(
        self,
        receivers: impl IntoIterator<Item = &'r Receiver, IntoIter: Clone>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let has_codes = self.postfix.is_some();
        let receivers = receivers.into_iter();
        let receivers = receivers.filter(|receiver| has_codes && receiver.has_key());
        let count = receivers.clone().count();
        if count > RECEIVERS {
            return Err(SealError::TooManyReceivers(count));
        }
        let content = out.get_mut(self.at..).unwrap_or_default();
        let length = content.len();
        let mac = match self.encrypts {
            true => self.key.seal(self.nonce, content),
            false => self.key.sign(self.nonce, content),
        };
        let mac = mac.ok_or(SealError::Cipher)?;
        if self.encrypts {
            self.fill_in_lengths(length, out)?;
        }
        if let Some(id) = self.postfix {
            let codes = count.saturating_mul(RECEIVER_BYTES);
            submessage(out, id, codes.saturating_add(20))?;
        }
        out.extend_from_slice(&mac);
        let count = u32::try_from(count).unwrap_or_default();
        out.extend_from_slice(&count.to_be_bytes());
        for receiver in receivers {
            let code = receiver.code(self.session, self.nonce, &mac);
            let (id, code) = code.ok_or(SealError::Cipher)?;
            out.extend_from_slice(&id.0);
            out.extend_from_slice(&code);
        }
        Ok(())
    }

    /// Pads ciphertext within a submessage and says how long it is.
    fn fill_in_lengths(&self, length: usize, out: &mut Vec<u8>) -> Result<(), SealError> {
        let too_long = || SealError::TooLong(length);
        let mut put = |before: usize, bytes: &[u8]| {
            let from = self.at.checked_sub(before);
            let place = from.and_then(|from| out.get_mut(from..)?.get_mut(..bytes.len()));
            if let Some(place) = place {
                place.copy_from_slice(bytes);
            }
        };
        let content = u32::try_from(length).map_err(|_| too_long())?;
        put(4, &content.to_be_bytes());
        if self.postfix.is_some() {
            let padding = length.wrapping_neg() & 3;
            let body = length.saturating_add(4).saturating_add(padding);
            let body = u16::try_from(body).map_err(|_| too_long())?;
            put(6, &body.to_le_bytes());
            out.extend_from_slice([0; 3].get(..padding).unwrap_or_default());
        }
        Ok(())
    }
}

/// A submessage's header: little-endian flags, as all others of ours.
fn submessage(out: &mut Vec<u8>, id: u8, length: usize) -> Result<(), SealError> {
    let length = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
    let [low, high] = length.to_le_bytes();
    out.extend_from_slice(&[id, 1, low, high]);
    Ok(())
}

const HEADER_BYTES: usize = 20;
/// Of one session: 2^32 messages are allowed with vectors by lot; ours count.
const SESSION_MESSAGES: u64 = 1 << 32;
/// 2^36 blocks of 16 bytes.
const SESSION_BLOCKS: u64 = 1 << 36;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{Frame, Opener, TransformKind};

    #[test]
    fn a_session_that_is_worn_out_is_followed_by_the_next_and_all_are_opened() {
        let material = KeyMaterial::generate(TransformKind::Aes256Gcm, true).unwrap();
        let receiver = Receiver::new(material.clone());
        let mut sealer = Sealer::new(material.clone()).unwrap();
        let mut opener = Opener::new(material, true);
        let mut seal = |sealer: &mut Sealer| {
            let (mut sealed, mut plain) = (Vec::new(), Vec::new());
            let heartbeat = [0x07, 1, 0, 0];
            sealer
                .seal(Layer::Submessage, &heartbeat, [&receiver], &mut sealed)
                .unwrap();
            let (frame, _) = Frame::of_submessage(&sealed).unwrap();
            let opened = opener.open(&frame, &mut plain).unwrap();
            assert_eq!(opened.bytes(), heartbeat);
            (u32::from_be_bytes(frame.session.0), frame.vector)
        };
        let (first, _) = seal(&mut sealer);
        sealer.vector = SESSION_MESSAGES;
        let one = 1_u64.to_be_bytes();
        assert_eq!(seal(&mut sealer), (first.wrapping_add(1), one));
        sealer.blocks = SESSION_BLOCKS;
        assert_eq!(seal(&mut sealer), (first.wrapping_add(2), one));
        let two = 2_u64.to_be_bytes();
        assert_eq!(seal(&mut sealer), (first.wrapping_add(2), two));
    }
}
