//! Opens what one sender protected. The last sessions' keys are remembered:
//! Fast DDS begins a session every 32 messages, and messages overtake one
//! another.

use super::keys::SessionKey;
use super::{Frame, KeyMaterial, SessionId, TransformKind};

/// One sender's keys on our side.
pub struct Opener {
    material: KeyMaterial,
    /// The most recently used first.
    sessions: [Option<Session>; SESSIONS],
    must_prove_origin: bool,
}

struct Session {
    id: SessionId,
    common: SessionKey,
    receiver: Option<SessionKey>,
}

/// Why something is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another key, or another kind of protection than this key is for.
    #[error("it is protected with another key or in another way")]
    Key,
    /// Changed, or made by somebody without the key.
    #[error("its code is wrong")]
    Mac,
    /// Made by somebody with the common key, but perhaps not the sender.
    #[error("it has no code for this receiver, or a wrong one")]
    Origin,
    /// The buffer is too small for it.
    #[error("it is longer than the buffer that is to take it")]
    Room,
}

/// What was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened<'a> {
    /// It was signed only: the content itself.
    Plain(&'a [u8]),
    /// It was encrypted: the buffer has it.
    Decrypted(&'a [u8]),
}

impl<'a> Opened<'a> {
    /// What was protected.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Plain(bytes) | Self::Decrypted(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener({:?})", self.material)
    }
}

impl Opener {
    /// With the keys that the sender gave. If `must_prove_origin`, what has no
    /// code for this receiver is refused.
    pub fn new(material: KeyMaterial, must_prove_origin: bool) -> Self {
        Self {
            material,
            sessions: [const { None }; SESSIONS],
            must_prove_origin,
        }
    }

    /// The keys.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Opens a frame. What was encrypted is written to `buffer`, which is as
    /// long as it; its former content is lost also if an error is returned.
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
            Ok(None) => Ok(Opened::Plain(frame.content)),
            Ok(Some(_)) => Ok(Opened::Decrypted(buffer)),
            Err(error) => {
                // Nothing that was not authentic is left to be seen.
                buffer.clear();
                Err(error)
            }
        }
    }

    /// Opens a frame. What was encrypted is written to the beginning of
    /// `buffer`, whose former content is lost there also after an error; how
    /// many bytes that are. What was only signed stays where it is: nothing.
    pub fn open_into(
        &mut self,
        frame: &Frame<'_>,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, OpenError> {
        let kind = self.material.kind;
        if frame.key != self.material.sender_key_id || !same_key(frame.kind, kind) {
            return Err(OpenError::Key);
        }
        let must_prove_origin = self.must_prove_origin;
        let receiver_key_id = self.material.receiver_key_id;
        let session = self.session(frame.session).ok_or(OpenError::Key)?;
        let nonce = frame.nonce();
        if must_prove_origin {
            let mac = receiver_key_id.and_then(|id| frame.receiver_mac(id));
            let key = session.receiver.as_ref();
            let (Some(mac), Some(key)) = (mac, key) else {
                return Err(OpenError::Origin);
            };
            if !key.verifies(nonce, &frame.mac, &mac) {
                return Err(OpenError::Origin);
            }
        }
        if !frame.kind.encrypts() {
            let good = session.common.verifies(nonce, frame.content, &frame.mac);
            return match good {
                true => Ok(None),
                false => Err(OpenError::Mac),
            };
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

    /// The keys of a session: remembered, or derived in place of those that
    /// were not used for longest.
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
                receiver: self.material.receiver_session_key(id),
            });
        }
        first.as_ref()
    }
}

/// Whether a key of `own` kind may be used for `stated`: what is to be
/// encrypted is not believed when it is only signed, nor the other way round.
fn same_key(stated: TransformKind, own: TransformKind) -> bool {
    stated == own
}

/// Sessions of one key that are remembered: more than overtake one another.
const SESSIONS: usize = 4;
