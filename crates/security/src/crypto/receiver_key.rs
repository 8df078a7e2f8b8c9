//! Receiver key: receiver-specific MACs, with which a sender proves to one receiver
//! that it sent a message itself, and no other holder of the common key (origin
//! authentication).

use std::fmt;

use parking_lot::Mutex;

use super::keys::SessionKey;
use super::{KeyId, KeyMaterial, Mac, SessionId};

/// A sender's keys with the receiver-specific key of one receiver
/// ([`KeyMaterial::for_another_receiver`]). It caches the key of the last session,
/// so no message needs a derivation or allocation. Thread-safe.
pub struct ReceiverKey {
    material: KeyMaterial,
    session: Mutex<Option<(SessionId, SessionKey)>>,
}

impl fmt::Debug for ReceiverKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({:?})", self.material)
    }
}

impl ReceiverKey {
    /// With the keys as the receiver gets them. Without a receiver-specific key, no
    /// MAC is made for it.
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

    /// Whether there is a receiver-specific key.
    pub(crate) fn has_key(&self) -> bool {
        self.material.receiver_key_id.is_some()
    }

    /// The receiver-specific MAC of the common MAC, and the id of its key.
    pub(crate) fn mac(
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
