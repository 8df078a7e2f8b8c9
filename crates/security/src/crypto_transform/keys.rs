//! Key exchange of the crypto transform: our keys for peers, and the keys of peers.

use std::collections::btree_map::Entry;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};

use super::CryptoTransform;
use super::remote_participant::{RemoteParticipant, SenderKeys};
use crate::crypto::{KeyMaterial, Opener, ReceiverKey};
use crate::key::RandomnessFailed;

/// Why a peer's keys are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// They are of a participant that has not authenticated.
    #[error("the participant has not authenticated")]
    Unauthenticated,
    /// They are for an endpoint that does not exist here.
    #[error("there is no endpoint {0:?} here for these keys")]
    UnknownEndpoint(EntityId),
    /// There are too few, or they are of a weaker kind than required.
    #[error("the keys protect less than the governance requires")]
    TooWeak,
    /// There are more than one endpoint can have.
    #[error("{0} keys for one endpoint; at most two are accepted")]
    TooMany(usize),
    /// Another endpoint of the peer has a key with the same id.
    #[error("two endpoints have a key with the same id")]
    DuplicateKeyId,
}

impl CryptoTransform {
    /// Our participant's keys for this peer; empty if the peer is unknown.
    pub fn participant_keys(&self, remote: GuidPrefix) -> Vec<KeyMaterial> {
        let state = self.state.read();
        let peer = state.peers.get(&remote);
        let peer = peer.filter(|peer| peer.key_exchange.is_some());
        peer.iter()
            .map(|peer| peer.own_keys.material().clone())
            .collect()
    }

    /// Stores the keys of a peer's participant. They are ignored where whole
    /// messages are not protected.
    ///
    /// # Errors
    /// See [`KeysError`]; the former keys then stay.
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
                0 => KeysError::TooWeak,
                more => KeysError::TooMany(more),
            });
        };
        let proves_origin = self.message.authenticates_origin();
        let is_weak = self.message.encrypts() && !key.kind.encrypts()
            || proves_origin && key.receiver_key_id.is_none();
        if is_weak {
            return Err(KeysError::TooWeak);
        }
        let opener = Opener::new(key.clone(), proves_origin);
        let has_counted_vectors = RemoteParticipant::has_counted_vectors(peer.vendor);
        let participant = &mut peer.keys.get_mut().participant;
        match participant {
            // The replay window stays: the same keys again must not allow a replay.
            Some(known) if known.has(key) => known.set(EntityId::PARTICIPANT, opener),
            _ => {
                *participant = Some(SenderKeys::new(
                    EntityId::PARTICIPANT,
                    opener,
                    has_counted_vectors,
                ))
            }
        }
        Ok(())
    }

    /// The keys of our endpoint for a peer's endpoint: none if it has no
    /// protection, else those of its submessages and payloads, in this order. A
    /// reader's keys for a Fast DDS writer are never empty where payloads are
    /// protected.
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
        let Some(peer) = peer.filter(|peer| peer.key_exchange.is_some()) else {
            return Ok(Vec::new());
        };
        let waits_for_any = peer.vendor == VendorId::FAST_DDS;
        let Some(endpoint) = state.own.get_mut(&own) else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::new();
        if let Some(sealer) = &endpoint.submessage {
            let common = sealer.material().clone();
            keys.push(if endpoint.protection.submessage.authenticates_origin() {
                match endpoint.receivers.entry(remote) {
                    Entry::Occupied(known) => known.get().material().clone(),
                    Entry::Vacant(vacant) => {
                        let receiver = ReceiverKey::new(common.for_another_receiver()?);
                        vacant.insert(receiver).material().clone()
                    }
                }
            } else {
                common
            });
        }
        if let Some(sealer) = &endpoint.payload {
            keys.push(sealer.material().clone());
        }
        keys.extend(endpoint.idle.iter().filter(|_| waits_for_any).cloned());
        Ok(keys)
    }

    /// Stores the keys of a peer's endpoint for ours, and
    /// [matches](Self::match_endpoints) the two.
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
        let local = state.own.get(&own).ok_or(KeysError::UnknownEndpoint(own))?;
        let protection = local.protection.of_sender(remote.entity);
        if keys.len() > KEYS_MAX {
            return Err(KeysError::TooMany(keys.len()));
        }
        let peer = state.authenticated(remote.prefix)?;
        let proves_origin = protection.submessage.authenticates_origin();
        let has_counted_vectors = RemoteParticipant::has_counted_vectors(peer.vendor);
        let known = &mut peer.keys.get_mut().endpoints;
        let is_taken = |key: &KeyMaterial| {
            let known = known.get(&key.sender_key_id);
            known.is_some_and(|(of, _)| *of != remote.entity)
        };
        if keys.iter().any(is_taken) {
            return Err(KeysError::DuplicateKeyId);
        }
        if !protect_enough(keys, protection) {
            return Err(KeysError::TooWeak);
        }
        for (at, key) in keys.iter().enumerate() {
            // Payloads have no receiver-specific MACs; the last key is theirs.
            let of_submessage = at == 0 && protection.submessage.is_on();
            let opener = || Opener::new(key.clone(), of_submessage && proves_origin);
            let entry = known.entry(key.sender_key_id);
            let (_, incoming) = entry.or_insert_with(|| {
                let incoming = SenderKeys::new(own, opener(), has_counted_vectors);
                (remote.entity, incoming)
            });
            if incoming.has(key) {
                incoming.set(own, opener())
            } else {
                *incoming = SenderKeys::new(own, opener(), has_counted_vectors)
            }
        }
        state.match_endpoints(own, remote);
        Ok(())
    }
}

impl super::State {
    fn authenticated(&mut self, remote: GuidPrefix) -> Result<&mut RemoteParticipant, KeysError> {
        let peer = self.peers.get_mut(&remote);
        peer.filter(|peer| peer.key_exchange.is_some())
            .ok_or(KeysError::Unauthenticated)
    }
}

/// Whether these keys protect as much as required: one key for each layer, or one
/// for both, as Fast DDS sends it.
fn protect_enough(keys: &[KeyMaterial], protection: super::EndpointProtection) -> bool {
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

/// Keys of one endpoint: one for its submessages and one for its payloads.
const KEYS_MAX: usize = 2;
