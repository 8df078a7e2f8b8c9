//! Remote participants: their keys, and which of their endpoints match which of
//! ours.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pteros_rtps::id::{EntityId, VendorId};

use super::drop_counts::DropReason;
use super::protection::EndpointProtection;
use crate::crypto::{
    Frame, KeyId, KeyMaterial, OpenError, Opener, ReceiverKey, ReplayWindow, Sealer,
};
use crate::governance::PayloadProtection;

#[derive(Debug)]
pub(super) struct RemoteParticipant {
    /// Sealer of the key exchange; `None` for a participant without authentication.
    pub key_exchange: Option<Sealer>,
    /// Its vendor, which determines how it chooses initialisation vectors.
    pub vendor: VendorId,
    /// It has our own identity, so it may read our shared memory.
    pub uses_shared_memory: bool,
    /// Our participant's keys as sent to it.
    pub own_keys: ReceiverKey,
    /// Its endpoints that match some of ours.
    pub endpoints: BTreeMap<EntityId, RemoteEndpoint>,
    /// Locked once for each of its datagrams: one thread at a time receives.
    pub keys: Mutex<RemoteKeys>,
}

/// The keys that a remote participant seals with.
#[derive(Debug, Default)]
pub(super) struct RemoteKeys {
    /// Key of the key exchange.
    pub exchange: Option<SenderKeys>,
    /// Key of whole messages.
    pub participant: Option<SenderKeys>,
    /// Keys of its endpoints, and their owners.
    pub endpoints: BTreeMap<KeyId, (EntityId, SenderKeys)>,
}

/// An endpoint of a remote participant.
#[derive(Debug)]
pub(super) struct RemoteEndpoint {
    /// The protection that our endpoint, and so this one, requires.
    pub protection: EndpointProtection,
    /// Our endpoints that match it.
    pub locals: Vec<EntityId>,
}

/// The keys of one sender, as received for each of our endpoints that it sends to.
/// They differ only in the receiver-specific key (origin authentication).
#[derive(Debug)]
pub(super) struct SenderKeys {
    openers: Vec<(EntityId, Opener)>,
    window: Option<ReplayWindow>,
}

impl SenderKeys {
    /// With a replay window if the sender counts its initialisation vectors.
    pub fn new(local: EntityId, opener: Opener, has_counted_vectors: bool) -> Self {
        Self {
            openers: vec![(local, opener)],
            window: has_counted_vectors.then(ReplayWindow::default),
        }
    }

    /// Sets the same sender's keys for one more of our endpoints, or replaces them.
    pub fn set(&mut self, local: EntityId, opener: Opener) {
        self.remove(local);
        self.openers.push((local, opener));
    }

    /// Whether these are the same keys, apart from the receiver-specific one.
    pub fn has(&self, key: &KeyMaterial) -> bool {
        let opener = self.openers.first();
        opener.is_some_and(|(_, opener)| opener.material().is_same_sender(key))
    }

    /// Returns false when no endpoint has the keys any more.
    pub fn remove(&mut self, local: EntityId) -> bool {
        self.openers.retain(|(of, _)| *of != local);
        !self.openers.is_empty()
    }

    pub fn serves(&self, local: EntityId) -> bool {
        self.openers.iter().any(|(of, _)| *of == local)
    }

    pub fn encrypts(&self) -> bool {
        let opener = self.openers.first();
        opener.is_some_and(|(_, opener)| opener.material().kind.encrypts())
    }

    /// Opens a frame as [`Opener::open_into`] does. With `is_once` a repeated frame
    /// is rejected.
    pub fn open(
        &mut self,
        frame: &Frame<'_>,
        buffer: &mut [u8],
        is_once: bool,
    ) -> Result<Option<usize>, DropReason> {
        let mut outcome = Err(OpenError::Key);
        for (_, opener) in &mut self.openers {
            outcome = opener.open_into(frame, buffer);
            if !matches!(outcome, Err(OpenError::Origin)) {
                break;
            }
        }
        let opened = outcome.map_err(|error| match error {
            OpenError::Key => DropReason::Key,
            OpenError::Room => DropReason::Malformed,
            OpenError::Mac | OpenError::Origin => DropReason::Forged,
        })?;
        if is_once && let Some(window) = &mut self.window {
            // Only authentic frames move the window.
            if !window.accept(frame.session, frame.vector) {
                return Err(DropReason::Replayed);
            }
        }
        Ok(opened)
    }
}

impl RemoteParticipant {
    /// Whether the vendor counts its initialisation vectors, so that a replay
    /// window works. Fast DDS chooses them at random.
    pub fn has_counted_vectors(vendor: VendorId) -> bool {
        vendor != VendorId::FAST_DDS
    }

    /// Whether `local` has keys for what `sender` protects in this way.
    pub fn has_keys(
        &self,
        sender: EntityId,
        local: EntityId,
        protection: EndpointProtection,
    ) -> bool {
        let protection = protection.of_sender(sender);
        let keys = self.keys.lock();
        let has = |encrypts: bool| {
            keys.endpoints.values().any(|(of, incoming)| {
                *of == sender && incoming.serves(local) && (incoming.encrypts() || !encrypts)
            })
        };
        let submessage = protection.submessage;
        let payload = protection.payload;
        (!submessage.is_on() || has(submessage.encrypts()))
            && (payload == PayloadProtection::None || has(payload == PayloadProtection::Encrypt))
    }

    /// Removes the match of one of our endpoints with one of its endpoints.
    pub fn unmatch(&mut self, local: EntityId, remote: EntityId) {
        if let Some(endpoint) = self.endpoints.get_mut(&remote) {
            endpoint.locals.retain(|one| *one != local);
            if endpoint.locals.is_empty() {
                self.endpoints.remove(&remote);
            }
        }
        let keys = &mut self.keys.get_mut().endpoints;
        keys.retain(|_, (of, incoming)| *of != remote || incoming.remove(local));
    }

    /// Its endpoint with this id, if it matches one of ours.
    pub fn remote(&self, sender: EntityId) -> Option<&RemoteEndpoint> {
        self.endpoints.get(&sender)
    }
}
