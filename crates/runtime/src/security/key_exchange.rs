//! The key exchange: crypto tokens sent and received (DDS Security 1.1 §7.4.4,
//! §9.5.3.5).
//!
//! Participant keys are sent after authentication, endpoint keys after a match.
//! They use the volatile secure topic, which the crypto transform protects with the
//! shared secret of the handshake.

use bytes::Bytes;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::discovery::spdp;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::time::Instant;
use pteros_security::auth::{GenericMessage, MessageIdentity, Token};
use pteros_security::crypto::{KeyMaterial, TransformKind};

use super::Security;

/// The built-in endpoints with keys of their own: local, remote, and the bit that
/// announces the remote one.
const SECURED_BUILTIN: [(EntityId, EntityId, u32); 8] = [
    (
        EntityId::SECURE_PUBLICATIONS_WRITER,
        EntityId::SECURE_PUBLICATIONS_READER,
        spdp::SECURE_PUBLICATIONS_READER,
    ),
    (
        EntityId::SECURE_PUBLICATIONS_READER,
        EntityId::SECURE_PUBLICATIONS_WRITER,
        spdp::SECURE_PUBLICATIONS_WRITER,
    ),
    (
        EntityId::SECURE_SUBSCRIPTIONS_WRITER,
        EntityId::SECURE_SUBSCRIPTIONS_READER,
        spdp::SECURE_SUBSCRIPTIONS_READER,
    ),
    (
        EntityId::SECURE_SUBSCRIPTIONS_READER,
        EntityId::SECURE_SUBSCRIPTIONS_WRITER,
        spdp::SECURE_SUBSCRIPTIONS_WRITER,
    ),
    (
        EntityId::SECURE_WLP_WRITER,
        EntityId::SECURE_WLP_READER,
        spdp::SECURE_WLP_READER,
    ),
    (
        EntityId::SECURE_WLP_READER,
        EntityId::SECURE_WLP_WRITER,
        spdp::SECURE_WLP_WRITER,
    ),
    (
        EntityId::SECURE_SPDP_WRITER,
        EntityId::SECURE_SPDP_READER,
        spdp::SECURE_SPDP_READER,
    ),
    (
        EntityId::SECURE_SPDP_READER,
        EntityId::SECURE_SPDP_WRITER,
        spdp::SECURE_SPDP_WRITER,
    ),
];

/// A bit of ENDPOINT_SECURITY_INFO's attributes (DDS Security 1.1 §9.4.2.4).
const PAYLOAD_PROTECTED: u32 = 1 << 4;
const PARTICIPANT: &str = "dds.sec.participant_crypto_tokens";
const WRITER: &str = "dds.sec.datawriter_crypto_tokens";
const READER: &str = "dds.sec.datareader_crypto_tokens";
const TOKEN: &str = "DDS:Crypto:AES_GCM_GMAC";
const MATERIAL: &str = "dds.cryp.keymat";

/// Endpoints whose keys a message carries; unknown for the participant's keys.
#[derive(Clone, Copy)]
struct KeyMessageEndpoints {
    /// The sender's endpoint.
    source: Guid,
    destination: Guid,
}

impl Security {
    /// Sends the keys of the participant and its built-in endpoints to a
    /// participant that was just authenticated.
    pub(super) fn send_participant_keys(&self, now: Instant, to: &ParticipantData) {
        let prefix = to.prefix;
        let keys = self.crypto_transform.participant_keys(prefix);
        let endpoints = KeyMessageEndpoints {
            source: Guid::UNKNOWN,
            destination: Guid::UNKNOWN,
        };
        self.send_key_message(now, prefix, PARTICIPANT, endpoints, &keys);
        for (own, theirs, bit) in SECURED_BUILTIN {
            if to.builtin_endpoints & bit != 0 {
                let theirs = prefix.with(theirs);
                self.crypto_transform.match_endpoints(own, theirs);
                self.send_endpoint_keys(now, own, theirs);
            }
        }
        self.parts
            .participant
            .lock()
            .note_initial_keys_sent(now, prefix);
    }

    /// Sends the keys of a local endpoint, if any, to a remote endpoint.
    pub(super) fn send_endpoint_keys(&self, now: Instant, own: EntityId, to: Guid) {
        let keys = self.crypto_transform.endpoint_keys(own, to);
        let keys = keys.and_then(|keys| {
            if keys.is_empty() && self.expects_any_key(own, to) {
                Ok(vec![KeyMaterial::generate(
                    TransformKind::Aes256Gcm,
                    false,
                )?])
            } else {
                Ok(keys)
            }
        });
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!("no keys for {to}: {error}");
                return;
            }
        };
        let class = if own.is_writer() { WRITER } else { READER };
        let endpoints = KeyMessageEndpoints {
            source: self.prefix.with(own),
            destination: to,
        };
        self.send_key_message(now, to.prefix, class, endpoints, &keys);
    }

    /// If payloads are protected and submessages are not, a reader has nothing to
    /// protect. Fast DDS writers still send to it only after they have received some key
    /// of it.
    fn expects_any_key(&self, own: EntityId, to: Guid) -> bool {
        let participant = self.parts.participant.lock();
        let theirs = participant.participant(to.prefix);
        let own = participant.endpoints().local(self.prefix.with(own));
        let info = own.and_then(|own| own.security_info);
        theirs.is_some_and(|theirs| theirs.vendor == VendorId::FAST_DDS)
            && own.is_some_and(|own| !own.is_writer())
            && info.is_some_and(|(attributes, _)| attributes & PAYLOAD_PROTECTED != 0)
    }

    fn send_key_message(
        &self,
        now: Instant,
        to: GuidPrefix,
        class: &str,
        endpoints: KeyMessageEndpoints,
        keys: &[KeyMaterial],
    ) {
        if keys.is_empty() {
            return;
        }
        let token = |key: &KeyMaterial| Token {
            class: TOKEN.into(),
            binary: vec![(MATERIAL.into(), key.to_bytes())],
            ..Token::default()
        };
        let writer = self.prefix.with(EntityId::VOLATILE_SECURE_WRITER);
        let message = GenericMessage {
            identity: MessageIdentity {
                source_guid: writer,
                sequence_number: self.next_message(),
            },
            related: MessageIdentity::UNKNOWN,
            destination_participant: to.with(EntityId::PARTICIPANT),
            destination_endpoint: endpoints.destination,
            source_endpoint: endpoints.source,
            class: class.into(),
            data: keys.iter().map(token).collect(),
        };
        let payload = Bytes::from(message.to_payload());
        if let Some(security) = self.parts.participant.lock().security_mut() {
            security.send_key_message(now, to, payload);
        }
    }

    /// Handles the keys of a peer.
    pub(super) fn handle_keys(&self, from: GuidPrefix, payload: &[u8]) {
        let Some(message) = GenericMessage::from_payload(payload) else {
            return;
        };
        let (own, source) = (message.destination_endpoint, message.source_endpoint);
        let to_us = message.destination_participant.prefix == self.prefix;
        if !to_us || message.identity.source_guid.prefix != from {
            return;
        }
        let material = |token: &Token| {
            let is_ours = token.class == TOKEN;
            let octets = token.get(MATERIAL).filter(|_| is_ours);
            octets.map(KeyMaterial::from_bytes)
        };
        // A token for no protection has no keys.
        let keys: Result<Vec<_>, _> = message.data.iter().filter_map(material).collect();
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                tracing::debug!(%from, %error, "keys");
                return;
            }
        };
        let taken = match message.class.as_str() {
            PARTICIPANT => self.crypto_transform.set_participant_keys(from, &keys),
            WRITER | READER if source.prefix == from && own.prefix == self.prefix => self
                .crypto_transform
                .set_endpoint_keys(own.entity, source, &keys),
            _ => return,
        };
        if let Err(error) = taken {
            tracing::debug!(%from, class = message.class, endpoint = %source, %error, "keys");
        }
    }
}
