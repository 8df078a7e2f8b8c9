//! Keys for peers, and of peers.

use std::collections::btree_map::Entry;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};

use super::Shield;
use super::peers::{Incoming, Peer};
use crate::crypto::{KeyMaterial, Opener, Receiver};
use crate::key::RandomnessFailed;

/// Why a peer's keys are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// They are of a participant that did not authenticate.
    #[error("the participant has not authenticated")]
    Stranger,
    /// They are for an endpoint that is not there.
    #[error("there is no endpoint {0:?} here that the keys could be for")]
    Endpoint(EntityId),
    /// There are fewer than are needed, or they are of a weaker kind.
    #[error("the keys do not protect as much as the governance asks for")]
    Weak,
    /// There are more than anybody needs.
    #[error("{0} keys for one endpoint; two are enough")]
    TooMany(usize),
    /// Another endpoint of the peer has a key with the same id.
    #[error("two endpoints have a key with the same id")]
    Twice,
}

impl Shield {
    /// Our participant's keys for this peer; empty if it is not known here.
    pub fn participant_keys(&self, remote: GuidPrefix) -> Vec<KeyMaterial> {
        let state = self.state.read();
        let peer = state.peers.get(&remote);
        let peer = peer.filter(|peer| peer.kx.is_some());
        peer.iter()
            .map(|peer| peer.own_keys.material().clone())
            .collect()
    }

    /// A peer's participant's keys. Where whole messages are not protected they
    /// are not looked at.
    ///
    /// # Errors
    /// See [`KeysError`]; the former keys hold then.
    pub fn set_participant_keys(
        &self,
        remote: GuidPrefix,
        keys: &[KeyMaterial],
    ) -> Result<(), KeysError> {
        let mut state = self.state.write();
        let peer = state.authenticated(remote)?;
        if !self.message.is_on() {
            return Ok(());
        }
        let [key] = keys else {
            return Err(match keys.len() {
                0 => KeysError::Weak,
                more => KeysError::TooMany(more),
            });
        };
        let proves_origin = self.message.authenticates_origin();
        let is_weak = self.message.encrypts() && !key.kind.encrypts()
            || proves_origin && key.receiver_key_id.is_none();
        if is_weak {
            return Err(KeysError::Weak);
        }
        let opener = Opener::new(key.clone(), proves_origin);
        let counts = Peer::counts(peer.vendor);
        let participant = &mut peer.keys.get_mut().participant;
        match participant {
            // The window goes on: the same keys again are no second chance.
            Some(known) if known.has(key) => known.set(EntityId::PARTICIPANT, opener),
            _ => *participant = Some(Incoming::new(EntityId::PARTICIPANT, opener, counts)),
        }
        Ok(())
    }

    /// The keys of our endpoint for a peer's: none if nothing of it is
    /// protected, else those of its submessages and payloads, in this order. A
    /// reader's for a writer of Fast DDS are never none where payloads are protected.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn endpoint_keys(
        &self,
        own: EntityId,
        remote: Guid,
    ) -> Result<Vec<KeyMaterial>, RandomnessFailed> {
        let mut state = self.state.write();
        let peer = state.peers.get(&remote.prefix);
        let Some(peer) = peer.filter(|peer| peer.kx.is_some()) else {
            return Ok(Vec::new());
        };
        let waits_for_any = peer.vendor == VendorId::FAST_DDS;
        let Some(endpoint) = state.own.get_mut(&own) else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::new();
        if let Some(sealer) = &endpoint.submessage {
            let common = sealer.material().clone();
            keys.push(
                match endpoint.protection.submessage.authenticates_origin() {
                    false => common,
                    true => match endpoint.receivers.entry(remote) {
                        Entry::Occupied(known) => known.get().material().clone(),
                        Entry::Vacant(vacant) => {
                            let receiver = Receiver::new(common.for_another_receiver()?);
                            vacant.insert(receiver).material().clone()
                        }
                    },
                },
            );
        }
        if let Some(sealer) = &endpoint.payload {
            keys.push(sealer.material().clone());
        }
        keys.extend(endpoint.idle.iter().filter(|_| waits_for_any).cloned());
        Ok(keys)
    }

    /// The keys of a peer's endpoint for ours, which are also a
    /// [pair](Self::pair) then.
    ///
    /// # Errors
    /// See [`KeysError`]; nothing is changed then.
    pub fn set_endpoint_keys(
        &self,
        own: EntityId,
        remote: Guid,
        keys: &[KeyMaterial],
    ) -> Result<(), KeysError> {
        let mut state = self.state.write();
        let local = state.own.get(&own).ok_or(KeysError::Endpoint(own))?;
        let protection = local.protection.of_sender(remote.entity);
        if keys.len() > KEYS_MAX {
            return Err(KeysError::TooMany(keys.len()));
        }
        let peer = state.authenticated(remote.prefix)?;
        let proves_origin = protection.submessage.authenticates_origin();
        let counts = Peer::counts(peer.vendor);
        let known = &mut peer.keys.get_mut().endpoints;
        let is_taken = |key: &KeyMaterial| {
            let known = known.get(&key.sender_key_id);
            known.is_some_and(|(of, _)| *of != remote.entity)
        };
        if keys.iter().any(is_taken) {
            return Err(KeysError::Twice);
        }
        if !suffice(keys, protection) {
            return Err(KeysError::Weak);
        }
        for (at, key) in keys.iter().enumerate() {
            // Payloads have no codes for single receivers; theirs is the last.
            let of_submessage = at == 0 && protection.submessage.is_on();
            let opener = || Opener::new(key.clone(), of_submessage && proves_origin);
            let entry = known.entry(key.sender_key_id);
            let (_, incoming) = entry.or_insert_with(|| {
                let incoming = Incoming::new(own, opener(), counts);
                (remote.entity, incoming)
            });
            match incoming.has(key) {
                true => incoming.set(own, opener()),
                false => *incoming = Incoming::new(own, opener(), counts),
            }
        }
        state.pair(own, remote);
        Ok(())
    }
}

impl super::State {
    fn authenticated(&mut self, remote: GuidPrefix) -> Result<&mut Peer, KeysError> {
        let peer = self.peers.get_mut(&remote);
        peer.filter(|peer| peer.kx.is_some())
            .ok_or(KeysError::Stranger)
    }
}

/// Whether these protect as much as is asked for: one key for each layer, or one
/// for both, as Fast DDS has it.
fn suffice(keys: &[KeyMaterial], protection: super::EndpointProtection) -> bool {
    use crate::governance::PayloadProtection;

    let fits = |encrypts: bool| keys.iter().any(|key| key.kind.encrypts() || !encrypts);
    let submessage = protection.submessage;
    let proves = keys
        .first()
        .is_some_and(|key| key.receiver_key_id.is_some());
    let payload = protection.payload;
    (!submessage.is_on() || fits(submessage.encrypts()))
        && (!submessage.authenticates_origin() || proves)
        && (payload == PayloadProtection::None || fits(payload == PayloadProtection::Encrypt))
}

/// Of one endpoint: for its submessages and for its payloads.
const KEYS_MAX: usize = 2;
