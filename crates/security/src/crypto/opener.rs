//! Opener: verifies and decrypts the data of one sender. It caches the keys of the
//! last sessions, because Fast DDS begins a session every 32 messages, and messages
//! overtake one another.

use super::keys::SessionKey;
use super::{Frame, KeyMaterial, SessionId, TransformKind};

/// One sender's keys on the receiving side.
pub struct Opener {
    material: KeyMaterial,
    /// Most recently used first.
    sessions: [Option<Session>; SESSIONS],
    requires_origin_authentication: bool,
}

struct Session {
    id: SessionId,
    common: SessionKey,
    receiver_key: Option<SessionKey>,
}

/// Why a frame is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another key, or another transformation than this key is for.
    #[error("it is protected with another key or transformation")]
    Key,
    /// Changed, or made without the key.
    #[error("its MAC is wrong")]
    Mac,
    /// Made with the common key, but not proven to be from the sender.
    #[error("its receiver-specific MAC is missing or wrong")]
    Origin,
    /// The buffer is too small.
    #[error("it is longer than the output buffer")]
    Room,
}

/// An opened frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened<'a> {
    /// Signed only: the content in place.
    Plaintext(&'a [u8]),
    /// Encrypted: the plaintext in the buffer.
    Decrypted(&'a [u8]),
}

impl<'a> Opened<'a> {
    /// The plaintext.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Plaintext(bytes) | Self::Decrypted(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener({:?})", self.material)
    }
}

impl Opener {
    /// With the keys that the sender sent. With `requires_origin_authentication`,
    /// frames without a MAC for this receiver are rejected.
    pub fn new(material: KeyMaterial, requires_origin_authentication: bool) -> Self {
        Self {
            material,
            sessions: [const { None }; SESSIONS],
            requires_origin_authentication,
        }
    }

    /// The keys.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Opens a frame. Plaintext of an encrypted frame is written to `buffer`, which
    /// gets its length. The former content is lost, also on an error.
    pub fn open<'a>(
        &mut self,
        frame: &Frame<'a>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, OpenError> {
        if frame.kind.encrypts() {
            buffer.clear();
            buffer.resize(frame.content.len(), 0);
        }
        match self.open_into(frame, buffer) {
            Ok(None) => Ok(Opened::Plaintext(frame.content)),
            Ok(Some(_)) => Ok(Opened::Decrypted(buffer)),
            Err(error) => {
                // No unauthenticated plaintext is left.
                buffer.clear();
                Err(error)
            }
        }
    }

    /// Opens a frame. Plaintext of an encrypted frame is written to the beginning
    /// of `buffer`, and its length returned; the former content there is lost, also
    /// on an error. A frame that is only signed stays in place: `None`.
    pub fn open_into(
        &mut self,
        frame: &Frame<'_>,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, OpenError> {
        let kind = self.material.kind;
        if frame.key != self.material.sender_key_id || !same_key(frame.kind, kind) {
            return Err(OpenError::Key);
        }
        let requires_origin_authentication = self.requires_origin_authentication;
        let receiver_key_id = self.material.receiver_key_id;
        let session = self.session(frame.session).ok_or(OpenError::Key)?;
        let nonce = frame.nonce();
        if requires_origin_authentication {
            let mac = receiver_key_id.and_then(|id| frame.receiver_mac(id));
            let key = session.receiver_key.as_ref();
            let (Some(mac), Some(key)) = (mac, key) else {
                return Err(OpenError::Origin);
            };
            if !key.verifies(nonce, &frame.mac, &mac) {
                return Err(OpenError::Origin);
            }
        }
        if !frame.kind.encrypts() {
            let good = session.common.verifies(nonce, frame.content, &frame.mac);
            return if good { Ok(None) } else { Err(OpenError::Mac) };
        }
        let length = frame.content.len();
        let plain = buffer.get_mut(..length).ok_or(OpenError::Room)?;
        let opened = session.common.open(nonce, frame.content, &frame.mac, plain);
        if opened.is_none() {
            plain.fill(0);
            return Err(OpenError::Mac);
        }
        Ok(Some(length))
    }

    /// The keys of a session: cached, or derived in place of the least recently
    /// used ones.
    fn session(&mut self, id: SessionId) -> Option<&Session> {
        let is_known = |session: &Option<Session>| {
            let session = session.as_ref();
            session.is_some_and(|session| session.id == id)
        };
        let known = self.sessions.iter().position(is_known);
        let place = known.unwrap_or(SESSIONS.saturating_sub(1));
        if let Some(upto) = self.sessions.get_mut(..=place).filter(|_| place > 0) {
            upto.rotate_right(1);
        }
        let first = self.sessions.first_mut()?;
        if known.is_none() {
            *first = Some(Session {
                id,
                common: self.material.session_key(id),
                receiver_key: self.material.receiver_session_key(id),
            });
        }
        first.as_ref()
    }
}

/// Whether a key of `own` kind may be used for `stated`. Data that must be
/// encrypted is rejected when it is only signed, and the other way round.
fn same_key(stated: TransformKind, own: TransformKind) -> bool {
    stated == own
}

/// Cached sessions of one key: more than overtake one another.
const SESSIONS: usize = 4;
