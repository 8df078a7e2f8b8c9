//! Protects what one sender sends: a counter as vector, a new session before
//! it or the key wears out. Appends to a buffer of the caller's; once its
//! capacity is there nothing is allocated. Threads that protect at the same time
//! share nothing but the counter.

use std::sync::atomic::{AtomicU64, Ordering};

use super::framing::{
    RECEIVER_BYTES, RECEIVERS, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX,
    nonce,
};
use super::keys::SessionKey;
use super::page::Page;
use super::{KeyMaterial, Mac, Receiver, SessionId};
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
    /// The session has protected all that its key is good for: a new one is due.
    #[error("the session's key is worn out")]
    WornOut,
    /// The cipher refused.
    #[error("the cipher refused to work")]
    Cipher,
}

/// One sender's keys at work. Shared by threads.
pub struct Sealer {
    material: KeyMaterial,
    session: SessionId,
    /// Kind, key and session, as they stand in every header.
    identity: [u8; 12],
    key: SessionKey,
    /// The last one that was used.
    vector: AtomicU64,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let vector = self.vector.load(Ordering::Relaxed);
        write!(f, "Sealer({:?}, vector {vector})", self.material)
    }
}

impl Sealer {
    /// Begins a session of this material.
    pub fn new(material: KeyMaterial) -> Result<Self, RandomnessFailed> {
        // Not a guess of the last run's sessions: keys may outlive a process.
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
        self.renew();
        let start = out.len();
        let mut page = Page::behind(std::mem::take(out));
        let begun = self.begin(layer, plain.len(), &mut page);
        let sealed =
            begun.and_then(|begun| begun.end(Plain::Elsewhere(plain), receivers, &mut page));
        if sealed.is_err() {
            page.truncate(start);
        }
        *out = page.into_bytes();
        sealed
    }

    /// Appends what stands before something of at most `bytes_max` bytes that is
    /// to be protected: [`Begun::end`] does that.
    ///
    /// # Errors
    /// [`SealError::WornOut`] until [`Sealer::renew`]; nothing is appended then.
    pub(crate) fn begin(
        &self,
        layer: Layer,
        bytes_max: usize,
        out: &mut Page,
    ) -> Result<Begun<'_>, SealError> {
        let share = u64::try_from(bytes_max / SHARE_BYTES).unwrap_or(u64::MAX);
        let share = share.saturating_add(1);
        let before = self.vector.fetch_add(share, Ordering::Relaxed);
        let vector = before.saturating_add(share);
        if vector > SESSION_SHARES {
            return Err(SealError::WornOut);
        }
        let vector = vector.to_be_bytes();
        let (prefix, postfix) = match layer {
            Layer::Payload => (None, None),
            Layer::Submessage => (Some(SEC_PREFIX), Some(SEC_POSTFIX)),
            Layer::Message => (Some(SRTPS_PREFIX), Some(SRTPS_POSTFIX)),
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
            // Its length, once that is known.
            out.put_array([0; 4]);
        }
        Ok(Begun {
            key: &self.key,
            session: self.session,
            nonce: nonce(self.session, vector),
            encrypts,
            postfix,
            at: out.len(),
        })
    }

    /// As if it had protected all that a session may.
    #[cfg(test)]
    pub(crate) fn wear_out(&mut self) {
        *self.vector.get_mut() = SESSION_SHARES;
    }

    /// Begins a new session if this one's key is worn out (NIST SP 800-38D §8.3).
    pub(crate) fn renew(&mut self) {
        if *self.vector.get_mut() < SESSION_SHARES {
            return;
        }
        // The next number: no session comes twice, nor before an earlier one.
        let session = u32::from_be_bytes(self.session.0).wrapping_add(1);
        let session = SessionId(session.to_be_bytes());
        *self = Self::in_session(self.material.clone(), session);
    }
}

/// Where that is which is to be protected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plain<'a> {
    /// It was appended to the page since its protection was begun.
    Written,
    /// It lies there, whole, and is written as it is protected.
    Elsewhere(&'a [u8]),
}

/// Something that is being protected, at the end of a page.
#[must_use = "nothing is protected before the end"]
pub(crate) struct Begun<'s> {
    key: &'s SessionKey,
    session: SessionId,
    nonce: [u8; 12],
    encrypts: bool,
    /// The submessage that follows; a payload has none.
    postfix: Option<u8>,
    /// Where it begins.
    at: usize,
}

impl Begun<'_> {
    /// Protects it, and appends what stands behind it. `receivers` are those
    /// whose codes are added; a payload has none. After an error `out` is good
    /// for nothing behind where this was begun.
    pub fn end<'r>(
        self,
        plain: Plain<'_>,
        receivers: impl IntoIterator<Item = &'r Receiver, IntoIter: Clone>,
        out: &mut Page,
    ) -> Result<(), SealError> {
        let has_codes = self.postfix.is_some();
        let receivers = receivers.into_iter();
        let receivers = receivers.filter(|receiver| has_codes && receiver.has_key());
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
        for receiver in receivers {
            let code = receiver.code(self.session, self.nonce, &mac);
            let (id, code) = code.ok_or(SealError::Cipher)?;
            out.put_array(id.0);
            out.put_array(code);
        }
        Ok(())
    }

    fn protect(&self, plain: Plain<'_>, out: &mut Page) -> Option<Mac> {
        match (plain, self.encrypts) {
            (Plain::Written, true) => self.key.seal(self.nonce, out.written_from(self.at)),
            (Plain::Written, false) => self.key.sign(self.nonce, out.written_from(self.at)),
            (Plain::Elsewhere(plain), true) => {
                let room = out.room(plain.len());
                self.key.seal_from(self.nonce, plain, room)
            }
            (Plain::Elsewhere(plain), false) => {
                out.put(plain);
                self.key.sign(self.nonce, plain)
            }
        }
    }

    /// Pads ciphertext within a submessage and says how long it is.
    fn fill_in_lengths(&self, out: &mut Page) -> Result<(), SealError> {
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
/// What one vector is for at most; who protects more takes several.
const SHARE_BYTES: usize = 1 << 16;
/// Of one session: 2^36 blocks of 16 bytes, so 2^24 times as many bytes as one
/// vector is for. Of messages it could be 2^32.
const SESSION_SHARES: u64 = 1 << 24;

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
        let (one, two) = (1_u64.to_be_bytes(), 2_u64.to_be_bytes());
        assert_eq!(seal(&mut sealer), (first, two));
        *sealer.vector.get_mut() = SESSION_SHARES - 1;
        let last = SESSION_SHARES.to_be_bytes();
        assert_eq!(seal(&mut sealer), (first, last));
        assert_eq!(seal(&mut sealer), (first.wrapping_add(1), one));
        assert_eq!(seal(&mut sealer), (first.wrapping_add(1), two));
    }

    #[test]
    fn who_protects_much_at_once_wears_its_key_out_sooner() {
        let material = KeyMaterial::generate(TransformKind::Aes128Gcm, false).unwrap();
        let sealer = Sealer::new(material).unwrap();
        let mut page = Page::default();
        let mut begin = |bytes| sealer.begin(Layer::Payload, bytes, &mut page).map(drop);
        let half = SHARE_BYTES * usize::try_from(SESSION_SHARES / 2).unwrap();
        assert_eq!(begin(half), Ok(()));
        assert_eq!(begin(half), Err(SealError::WornOut));
        assert_eq!(page.len(), 24);
    }
}
