//! Sealer: encrypts and signs the data of one sender. A counter is the
//! initialisation vector, and a new session begins before the vector or the key is
//! exhausted. It appends to the caller's buffer and does not allocate once the
//! capacity is there. Threads that seal at the same time share only the counter.

use std::sync::atomic::{AtomicU64, Ordering};

use super::framing::{
    RECEIVER_BYTES, RECEIVERS, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX,
    nonce,
};
use super::keys::SessionKey;
use super::output_buffer::OutputBuffer;
use super::{KeyMaterial, Mac, ReceiverKey, SessionId};
use crate::key::RandomnessFailed;

/// The part of an RTPS message that is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtectionLayer {
    /// The payload of a sample.
    Payload,
    /// One submessage, sent between SEC_PREFIX and SEC_POSTFIX.
    Submessage,
    /// All submessages of a message, after its RTPS header.
    Message,
}

/// Why data was not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Too long for the length field of a submessage.
    #[error("{0} bytes are too many for one protected submessage; fragment the sample")]
    TooLong(usize),
    /// More receiver-specific MACs than are accepted.
    #[error("{0} receivers; a protected submessage has MACs for at most 2048")]
    TooManyReceivers(usize),
    /// No randomness for a new session.
    #[error(transparent)]
    Randomness(#[from] RandomnessFailed),
    /// The session has protected as much as its key allows: a new one is due.
    #[error("the session's key is exhausted")]
    SessionExhausted,
    /// The cipher failed.
    #[error("the cipher failed")]
    Cipher,
}

/// One sender's keys in use. Thread-safe.
pub struct Sealer {
    material: KeyMaterial,
    session: SessionId,
    /// Kind, key id and session id, as in every header.
    identity: [u8; 12],
    key: SessionKey,
    /// The last one used.
    vector: AtomicU64,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let vector = self.vector.load(Ordering::Relaxed);
        write!(f, "Sealer({:?}, vector {vector})", self.material)
    }
}

impl Sealer {
    /// Begins a session with this material.
    pub fn new(material: KeyMaterial) -> Result<Self, RandomnessFailed> {
        // Random, so that it differs from the last run's sessions: keys may outlive
        // a process.
        let mut session = [0; 4];
        aws_lc_rs::rand::fill(&mut session).map_err(|_| RandomnessFailed)?;
        Ok(Self::in_session(material, SessionId(session)))
    }

    fn in_session(material: KeyMaterial, session: SessionId) -> Self {
        let mut identity = [0; 12];
        let parts = [material.kind.octets(), material.sender_key_id.0, session.0];
        identity.copy_from_slice(parts.as_flattened());
        Self {
            key: material.session_key(session),
            material,
            session,
            identity,
            vector: AtomicU64::new(0),
        }
    }

    /// The keys.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Bytes that protection adds at most, including receiver-specific MACs.
    pub fn overhead_bytes(layer: ProtectionLayer, receivers: usize) -> usize {
        let framing = match layer {
            ProtectionLayer::Payload => 0,
            // Three submessage headers, and padding.
            ProtectionLayer::Submessage | ProtectionLayer::Message => 15,
        };
        let codes = receivers.saturating_mul(RECEIVER_BYTES);
        44_usize.saturating_add(framing).saturating_add(codes)
    }

    /// Appends the protected form of `plain` to `out`, with MACs for `receivers`; a
    /// payload has none. On an error `out` is unchanged.
    pub fn seal<'r>(
        &mut self,
        layer: ProtectionLayer,
        plain: &[u8],
        receivers: impl IntoIterator<Item = &'r ReceiverKey, IntoIter: Clone>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        self.renew_session();
        let start = out.len();
        let mut output_buffer = OutputBuffer::appending_to(std::mem::take(out));
        let begun = self.begin(layer, plain.len(), &mut output_buffer);
        let sealed = begun.and_then(|begun| {
            begun.end(Plaintext::Elsewhere(plain), receivers, &mut output_buffer)
        });
        if sealed.is_err() {
            output_buffer.truncate(start);
        }
        *out = output_buffer.into_bytes();
        sealed
    }

    /// Appends the header for at most `bytes_max` bytes of plaintext;
    /// [`SealInProgress::end`] protects them.
    ///
    /// # Errors
    /// [`SealError::SessionExhausted`] until [`Sealer::renew_session`]; nothing is appended then.
    pub(crate) fn begin(
        &self,
        layer: ProtectionLayer,
        bytes_max: usize,
        out: &mut OutputBuffer,
    ) -> Result<SealInProgress<'_>, SealError> {
        let share = u64::try_from(bytes_max / BYTES_PER_VECTOR).unwrap_or(u64::MAX);
        let share = share.saturating_add(1);
        let before = self.vector.fetch_add(share, Ordering::Relaxed);
        let vector = before.saturating_add(share);
        if vector > VECTORS_PER_SESSION {
            return Err(SealError::SessionExhausted);
        }
        let vector = vector.to_be_bytes();
        let (prefix, postfix) = match layer {
            ProtectionLayer::Payload => (None, None),
            ProtectionLayer::Submessage => (Some(SEC_PREFIX), Some(SEC_POSTFIX)),
            ProtectionLayer::Message => (Some(SRTPS_PREFIX), Some(SRTPS_POSTFIX)),
        };
        if let Some(id) = prefix {
            out.put_array([id, 1, HEADER_BYTES, 0]);
        }
        out.put_array(self.identity);
        out.put_array(vector);
        let encrypts = self.material.kind.encrypts();
        if encrypts {
            if prefix.is_some() {
                out.put_array([SEC_BODY, 1, 0, 0]);
            }
            // The length, filled in later.
            out.put_array([0; 4]);
        }
        Ok(SealInProgress {
            key: &self.key,
            session: self.session,
            nonce: nonce(self.session, vector),
            encrypts,
            postfix,
            at: out.len(),
        })
    }

    /// For tests: exhausts the session.
    #[cfg(test)]
    pub(crate) fn exhaust_session(&mut self) {
        *self.vector.get_mut() = VECTORS_PER_SESSION;
    }

    /// Begins a new session if this one's key is exhausted (NIST SP 800-38D §8.3).
    pub(crate) fn renew_session(&mut self) {
        if *self.vector.get_mut() < VECTORS_PER_SESSION {
            return;
        }
        // The next number: no session is repeated or precedes an earlier one.
        let session = u32::from_be_bytes(self.session.0).wrapping_add(1);
        let session = SessionId(session.to_be_bytes());
        *self = Self::in_session(self.material.clone(), session);
    }
}

/// Where the plaintext is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plaintext<'a> {
    /// Appended to the output buffer since sealing began.
    Written,
    /// Elsewhere, contiguous; written while it is protected.
    Elsewhere(&'a [u8]),
}

/// Data that is being sealed, at the end of an output buffer.
#[must_use = "nothing is sealed before `end`"]
pub(crate) struct SealInProgress<'s> {
    key: &'s SessionKey,
    session: SessionId,
    nonce: [u8; 12],
    encrypts: bool,
    /// The postfix submessage; a payload has none.
    postfix: Option<u8>,
    /// Offset where it begins.
    at: usize,
}

impl SealInProgress<'_> {
    /// Protects the plaintext, and appends the footer with MACs for `receivers`; a
    /// payload has none. On an error, the content of `out` from the beginning of
    /// this frame on is invalid.
    pub fn end<'r>(
        self,
        plain: Plaintext<'_>,
        receivers: impl IntoIterator<Item = &'r ReceiverKey, IntoIter: Clone>,
        out: &mut OutputBuffer,
    ) -> Result<(), SealError> {
        let has_codes = self.postfix.is_some();
        let receivers = receivers.into_iter();
        let receivers = receivers.filter(|receiver_key| has_codes && receiver_key.has_key());
        let count = receivers.clone().count();
        if count > RECEIVERS {
            return Err(SealError::TooManyReceivers(count));
        }
        let mac = self.protect(plain, out).ok_or(SealError::Cipher)?;
        if self.encrypts {
            self.fill_in_lengths(out)?;
        }
        if let Some(id) = self.postfix {
            let length = count.saturating_mul(RECEIVER_BYTES).saturating_add(20);
            let short = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
            let [low, high] = short.to_le_bytes();
            out.put_array([id, 1, low, high]);
        }
        out.put_array(mac);
        let count = u32::try_from(count).unwrap_or_default();
        out.put_array(count.to_be_bytes());
        for receiver_key in receivers {
            let mac = receiver_key.mac(self.session, self.nonce, &mac);
            let (id, mac) = mac.ok_or(SealError::Cipher)?;
            out.put_array(id.0);
            out.put_array(mac);
        }
        Ok(())
    }

    fn protect(&self, plain: Plaintext<'_>, out: &mut OutputBuffer) -> Option<Mac> {
        match (plain, self.encrypts) {
            (Plaintext::Written, true) => self.key.seal(self.nonce, out.written_from(self.at)),
            (Plaintext::Written, false) => self.key.sign(self.nonce, out.written_from(self.at)),
            (Plaintext::Elsewhere(plain), true) => {
                let room = out.reserve(plain.len());
                self.key.seal_from(self.nonce, plain, room)
            }
            (Plaintext::Elsewhere(plain), false) => {
                out.put(plain);
                self.key.sign(self.nonce, plain)
            }
        }
    }

    /// Pads the ciphertext within a submessage and fills in its length.
    fn fill_in_lengths(&self, out: &mut OutputBuffer) -> Result<(), SealError> {
        let length = out.len().saturating_sub(self.at);
        let too_long = || SealError::TooLong(length);
        let content = u32::try_from(length).map_err(|_| too_long())?;
        let place = out.written_from(self.at.saturating_sub(4));
        if let Some(place) = place.first_chunk_mut() {
            *place = content.to_be_bytes();
        }
        if self.postfix.is_some() {
            let padding = length.wrapping_neg() & 3;
            let body = length.saturating_add(4).saturating_add(padding);
            let body = u16::try_from(body).map_err(|_| too_long())?;
            let place = out.written_from(self.at.saturating_sub(6));
            if let Some(place) = place.first_chunk_mut() {
                *place = body.to_le_bytes();
            }
            out.put([0; 3].get(..padding).unwrap_or_default());
        }
        Ok(())
    }
}

/// Of a CryptoHeader.
const HEADER_BYTES: u8 = 20;
/// Bytes that one vector counts for at most. Longer data takes several.
const BYTES_PER_VECTOR: usize = 1 << 16;
/// Vectors of one session: 2^36 blocks of 16 bytes, so 2^24 times as many bytes as
/// one vector counts for. The limit for messages would be 2^32.
const VECTORS_PER_SESSION: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{Frame, Opener, TransformKind};

    #[test]
    fn an_exhausted_session_is_followed_by_the_next_and_all_are_opened() {
        let material = KeyMaterial::generate(TransformKind::Aes256Gcm, true).unwrap();
        let receiver_key = ReceiverKey::new(material.clone());
        let mut sealer = Sealer::new(material.clone()).unwrap();
        let mut opener = Opener::new(material, true);
        let mut seal = |sealer: &mut Sealer| {
            let (mut sealed, mut plain) = (Vec::new(), Vec::new());
            let heartbeat = [0x07, 1, 0, 0];
            sealer
                .seal(
                    ProtectionLayer::Submessage,
                    &heartbeat,
                    [&receiver_key],
                    &mut sealed,
                )
                .unwrap();
            let (frame, _) = Frame::of_submessage(&sealed).unwrap();
            let opened = opener.open(&frame, &mut plain).unwrap();
            assert_eq!(opened.bytes(), heartbeat);
            (u32::from_be_bytes(frame.session.0), frame.vector)
        };
        let (first, _) = seal(&mut sealer);
        let (one, two) = (1_u64.to_be_bytes(), 2_u64.to_be_bytes());
        assert_eq!(seal(&mut sealer), (first, two));
        *sealer.vector.get_mut() = VECTORS_PER_SESSION - 1;
        let last = VECTORS_PER_SESSION.to_be_bytes();
        assert_eq!(seal(&mut sealer), (first, last));
        assert_eq!(seal(&mut sealer), (first.wrapping_add(1), one));
        assert_eq!(seal(&mut sealer), (first.wrapping_add(1), two));
    }

    #[test]
    fn large_payloads_exhaust_a_session_sooner() {
        let material = KeyMaterial::generate(TransformKind::Aes128Gcm, false).unwrap();
        let sealer = Sealer::new(material).unwrap();
        let mut output_buffer = OutputBuffer::default();
        let mut begin = |bytes| {
            sealer
                .begin(ProtectionLayer::Payload, bytes, &mut output_buffer)
                .map(drop)
        };
        let half = BYTES_PER_VECTOR * usize::try_from(VECTORS_PER_SESSION / 2).unwrap();
        assert_eq!(begin(half), Ok(()));
        assert_eq!(begin(half), Err(SealError::SessionExhausted));
        assert_eq!(output_buffer.len(), 24);
    }
}
