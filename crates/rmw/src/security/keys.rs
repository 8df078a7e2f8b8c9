//! Keys given and taken (DDS Security 1.1 §7.4.4, §9.5.3.5): those of the
//! participant once another one is in, those of endpoints once they match. They
//! go by the volatile secure topic, which the shield seals with what the
//! handshake agreed on.

use bytes::Bytes;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::discovery::spdp;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::time::Instant;
use pteros_security::auth::{GenericMessage, Token};
use pteros_security::crypto::{KeyMaterial, TransformKind};

use super::Security;
use crate::core::Core;

/// The built-in endpoints that have keys of their own: ours, theirs, and the bit
/// that says that they have it.
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

/// Of ENDPOINT_SECURITY_INFO's attributes (DDS Security 1.1 §9.4.2.4).
const PAYLOAD_PROTECTED: u32 = 1 << 4;
const PARTICIPANT: &str = "dds.sec.participant_crypto_tokens";
const WRITER: &str = "dds.sec.datawriter_crypto_tokens";
const READER: &str = "dds.sec.datareader_crypto_tokens";
const TOKEN: &str = "DDS:Crypto:AES_GCM_GMAC";
const MATERIAL: &str = "dds.cryp.keymat";

impl Core {
    /// Gives a participant that has just been let in our participant's keys, and
    /// those of the built-in endpoints.
    pub(super) fn give_first_keys(&self, now: Instant, security: &Security, to: &ParticipantData) {
        let prefix = to.prefix;
        let keys = security.shield.participant_keys(prefix);
        let none = Guid::UNKNOWN;
        self.give(now, security, prefix, PARTICIPANT, (none, none), &keys);
        for (own, theirs, bit) in SECURED_BUILTIN {
            if to.builtin_endpoints & bit != 0 {
                let theirs = prefix.with(theirs);
                security.shield.pair(own, theirs);
                self.give_keys(now, security, own, theirs);
            }
        }
        self.participant.lock().note_first_keys(now, prefix);
    }

    /// Gives a peer's endpoint the keys of ours, if there are any.
    pub(super) fn give_keys(&self, now: Instant, security: &Security, own: EntityId, to: Guid) {
        let keys = security.shield.endpoint_keys(own, to);
        let keys = keys.and_then(
            |keys| match keys.is_empty() && self.waits_for_any_key(own, to) {
                true => Ok(vec![KeyMaterial::generate(
                    TransformKind::Aes256Gcm,
                    false,
                )?]),
                false => Ok(keys),
            },
        );
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!("no keys for {to}: {error}");
                return;
            }
        };
        let class = match own.is_writer() {
            true => WRITER,
            false => READER,
        };
        let ends = (self.prefix.with(own), to);
        self.give(now, security, to.prefix, class, ends, &keys);
    }

    /// Where payloads are protected and submessages are not, a reader has nothing
    /// to protect. Fast DDS's writers send it nothing all the same before they have
    /// had some key of it.
    fn waits_for_any_key(&self, own: EntityId, to: Guid) -> bool {
        let participant = self.participant.lock();
        let theirs = participant.participant(to.prefix);
        let own = participant.own_endpoint(self.prefix.with(own));
        let info = own.and_then(|own| own.security_info);
        theirs.is_some_and(|theirs| theirs.vendor == VendorId::FAST_DDS)
            && own.is_some_and(|own| !own.is_writer())
            && info.is_some_and(|(attributes, _)| attributes & PAYLOAD_PROTECTED != 0)
    }

    fn give(
        &self,
        now: Instant,
        security: &Security,
        to: GuidPrefix,
        class: &str,
        (source, destination): (Guid, Guid),
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
            identity: (writer, security.next_message()),
            related: (Guid::UNKNOWN, 0),
            destination_participant: to.with(EntityId::PARTICIPANT),
            destination_endpoint: destination,
            source_endpoint: source,
            class: class.into(),
            data: keys.iter().map(token).collect(),
        };
        let payload = Bytes::from(message.to_payload());
        self.participant.lock().send_keys(now, to, payload);
    }

    /// A peer gives keys. True if some pair may be open now that was not.
    pub(super) fn take_keys(&self, security: &Security, from: GuidPrefix, payload: &[u8]) -> bool {
        let Some(message) = GenericMessage::from_payload(payload) else {
            return false;
        };
        let (own, source) = (message.destination_endpoint, message.source_endpoint);
        let to_us = message.destination_participant.prefix == self.prefix;
        if !to_us || message.identity.0.prefix != from {
            return false;
        }
        let material = |token: &Token| {
            let is_ours = token.class == TOKEN;
            let octets = token.get(MATERIAL).filter(|_| is_ours);
            octets.map(KeyMaterial::from_bytes)
        };
        // One for no protection has no keys.
        let keys: Result<Vec<_>, _> = message.data.iter().filter_map(material).collect();
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                tracing::debug!(%from, %error, "keys");
                return false;
            }
        };
        let taken = match message.class.as_str() {
            PARTICIPANT => security.shield.set_participant_keys(from, &keys),
            WRITER | READER if source.prefix == from && own.prefix == self.prefix => {
                security.shield.set_endpoint_keys(own.entity, source, &keys)
            }
            _ => return false,
        };
        if let Err(error) = taken {
            tracing::debug!(%from, class = message.class, endpoint = %source, %error, "keys");
        }
        taken.is_ok()
    }
}
