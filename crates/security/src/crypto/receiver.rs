//! What a sender proves with to one single receiver that it was itself, and
//! none of the others who have the common key.

use std::fmt;

use parking_lot::Mutex;

use super::keys::SessionKey;
use super::{KeyId, KeyMaterial, Mac, SessionId};

/// A sender's keys with the one that a single receiver has of its own
/// ([`KeyMaterial::for_another_receiver`]). The key of the last session is kept, so
/// nothing is derived or allocated for each message. Shared by threads.
pub struct Receiver {
    material: KeyMaterial,
    session: Mutex<Option<(SessionId, SessionKey)>>,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({:?})", self.material)
    }
}

impl Receiver {
    /// With the keys as the receiver gets them. Without one of its own nothing is
    /// proved to it.
    pub fn new(material: KeyMaterial) -> Self {
        Self {
            material,
            session: Mutex::default(),
        }
    }

    /// The keys.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Whether there is anything to prove with.
    pub(crate) fn has_key(&self) -> bool {
        self.material.receiver_key_id.is_some()
    }

    /// The receiver's code of the common code, and which key it is made with.
    pub(crate) fn code(
        &self,
        session: SessionId,
        nonce: [u8; 12],
        common: &Mac,
    ) -> Option<(KeyId, Mac)> {
        let id = self.material.receiver_key_id?;
        let mut kept = self.session.lock();
        if kept.as_ref().is_none_or(|(of, _)| *of != session) {
            let key = self.material.receiver_session_key(session)?;
            *kept = Some((session, key));
        }
        let (_, key) = kept.as_ref()?;
        Some((id, key.sign(nonce, common)?))
    }
}
