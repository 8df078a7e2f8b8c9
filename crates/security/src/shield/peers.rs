//! What is known of other participants: their keys on our side, and which of
//! their endpoints match which of ours.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pteros_rtps::id::{EntityId, VendorId};

use super::protection::EndpointProtection;
use super::refusals::Refusal;
use crate::crypto::{Frame, KeyId, KeyMaterial, OpenError, Opener, Receiver, ReplayWindow, Sealer};
use crate::governance::PayloadProtection;

/// Another participant.
#[derive(Debug)]
pub(super) struct Peer {
    /// Nothing of one that is let in without authentication.
    pub kx: Option<Sealer>,
    /// How it draws vectors.
    pub vendor: VendorId,
    /// It has our own identity, so it may read what lies in our memory.
    pub shares_memory: bool,
    /// Our participant's keys as it knows them.
    pub own_keys: Receiver,
    /// Those of its endpoints that match some of ours.
    pub endpoints: BTreeMap<EntityId, Remote>,
    /// Taken once for each datagram of it: one thread at a time receives.
    pub keys: Mutex<Keys>,
}

/// What another participant protects with.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Keys' own exchange.
    pub exchange: Option<Incoming>,
    /// Whole messages.
    pub participant: Option<Incoming>,
    /// Its endpoints' keys, and whose they are.
    pub endpoints: BTreeMap<KeyId, (EntityId, Incoming)>,
}

/// An endpoint of a peer.
#[derive(Debug)]
pub(super) struct Remote {
    /// What ours, and so itself, ask for.
    pub protection: EndpointProtection,
    /// Which of ours match it.
    pub locals: Vec<EntityId>,
}

/// The keys of one sender, as each of our endpoints that it sends to has got
/// them: they differ in what proves the origin.
#[derive(Debug)]
pub(super) struct Incoming {
    openers: Vec<(EntityId, Opener)>,
    window: Option<ReplayWindow>,
}

impl Incoming {
    /// `window` if what comes is to come once, and its sender counts.
    pub fn new(local: EntityId, opener: Opener, counts: bool) -> Self {
        Self {
            openers: vec![(local, opener)],
            window: counts.then(ReplayWindow::default),
        }
    }

    /// The same sender's keys for one more of our endpoints, or anew.
    pub fn set(&mut self, local: EntityId, opener: Opener) {
        self.remove(local);
        self.openers.push((local, opener));
    }

    /// Whether these are the keys, but for what proves the origin.
    pub fn has(&self, key: &KeyMaterial) -> bool {
        let opener = self.openers.first();
        opener.is_some_and(|(_, opener)| opener.material().is_same_sender(key))
    }

    /// False when nobody is left who has them.
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

    /// Opens a frame as [`Opener::open_into`] does; `is_once` if it may not come
    /// again.
    pub fn open(
        &mut self,
        frame: &Frame<'_>,
        buffer: &mut [u8],
        is_once: bool,
    ) -> Result<Option<usize>, Refusal> {
        let mut outcome = Err(OpenError::Key);
        for (_, opener) in &mut self.openers {
            outcome = opener.open_into(frame, buffer);
            if !matches!(outcome, Err(OpenError::Origin)) {
                break;
            }
        }
        let opened = outcome.map_err(|error| match error {
            OpenError::Key => Refusal::Key,
            OpenError::Room => Refusal::Malformed,
            OpenError::Mac | OpenError::Origin => Refusal::Forged,
        })?;
        if is_once && let Some(window) = &mut self.window {
            // Only what is authentic moves it.
            if !window.accept(frame.session, frame.vector) {
                return Err(Refusal::Replayed);
            }
        }
        Ok(opened)
    }
}

impl Peer {
    /// Whether it counts its vectors up, so that a window tells what is old.
    /// Fast DDS draws them by lot.
    pub fn counts(vendor: VendorId) -> bool {
        vendor != VendorId::FAST_DDS
    }

    /// Whether keys for what `sender` protects so are there for `local`.
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

    /// One of ours matches one of its no longer.
    pub fn unpair(&mut self, local: EntityId, remote: EntityId) {
        if let Some(endpoint) = self.endpoints.get_mut(&remote) {
            endpoint.locals.retain(|one| *one != local);
            if endpoint.locals.is_empty() {
                self.endpoints.remove(&remote);
            }
        }
        let keys = &mut self.keys.get_mut().endpoints;
        keys.retain(|_, (of, incoming)| *of != remote || incoming.remove(local));
    }

    /// Whether one of its endpoints may write to or read from this one of ours.
    pub fn remote(&self, sender: EntityId) -> Option<&Remote> {
        self.endpoints.get(&sender)
    }
}
