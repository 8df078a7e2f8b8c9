//! What stands for whom: which protection an endpoint asks for, and what role
//! it has by its id.

use pteros_rtps::id::EntityId;

use crate::attributes::SecurityInfo;
use crate::crypto::TransformKind;
use crate::governance::{DomainRule, PayloadProtection, Protection};

/// How an endpoint's submessages and payloads are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndpointProtection {
    pub submessage: Protection,
    pub payload: PayloadProtection,
}

impl EndpointProtection {
    /// What an endpoint announces that is protected so.
    pub fn of(info: SecurityInfo) -> Self {
        let attribute = |bit: u32| info.attributes >> bit & 1 == 1;
        let plugin = |bit: u32| info.plugin_attributes >> bit & 1 == 1;
        let submessage = match (attribute(3), plugin(0), plugin(2)) {
            (false, _, _) => Protection::None,
            (true, false, false) => Protection::Sign,
            (true, true, false) => Protection::Encrypt,
            (true, false, true) => Protection::SignWithOriginAuthentication,
            (true, true, true) => Protection::EncryptWithOriginAuthentication,
        };
        let payload = match (attribute(4), plugin(1)) {
            (false, _) => PayloadProtection::None,
            (true, false) => PayloadProtection::Sign,
            (true, true) => PayloadProtection::Encrypt,
        };
        Self {
            submessage,
            payload,
        }
    }

    /// Of a built-in endpoint that only has protected submessages.
    pub fn of_builtin(submessage: Protection) -> Self {
        Self {
            submessage,
            payload: PayloadProtection::None,
        }
    }

    /// What a reader's acknowledgements have of it: no payload.
    pub fn of_sender(self, sender: EntityId) -> Self {
        match sender.is_reader() {
            true => Self::of_builtin(self.submessage),
            false => self,
        }
    }

    pub fn is_none(self) -> bool {
        !self.submessage.is_on() && self.payload == PayloadProtection::None
    }
}

/// The transformation for this protection, with keys of 256 bits.
pub(super) fn transformation(encrypts: bool) -> TransformKind {
    match encrypts {
        true => TransformKind::Aes256Gcm,
        false => TransformKind::Aes256Gmac,
    }
}

/// What an endpoint is, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// SPDP and the handshake's messages: there before any key is.
    Bootstrap,
    /// Where keys are exchanged, protected with the key for keys.
    KeyExchange,
    /// A built-in endpoint of its own protected channel.
    Secured,
    /// Any other built-in endpoint: SEDP, liveliness, TypeLookup.
    Builtin,
    /// A user's endpoint.
    User,
}

impl Role {
    pub fn of(entity: EntityId) -> Self {
        if !entity.is_builtin() {
            return Self::User;
        }
        match entity.key {
            SPDP | STATELESS => Self::Bootstrap,
            KEY_EXCHANGE => Self::KeyExchange,
            SECURE_SPDP | SECURE_PUBLICATIONS | SECURE_SUBSCRIPTIONS | SECURE_LIVELINESS => {
                Self::Secured
            }
            _ => Self::Builtin,
        }
    }
}

/// The secured built-in endpoints, and how this rule protects them: perhaps not at
/// all, where it has them used for some topics all the same.
pub(super) fn secured_endpoints(rule: &DomainRule) -> Vec<(EntityId, Protection)> {
    let discovery = [SECURE_SPDP, SECURE_PUBLICATIONS, SECURE_SUBSCRIPTIONS];
    let discovery = discovery.map(|key| (key, rule.discovery));
    let channels = discovery.into_iter();
    let channels = channels.chain([(SECURE_LIVELINESS, rule.liveliness)]);
    channels
        .flat_map(|(key, protection)| {
            [0xc2, 0xc7].map(|kind| (EntityId::new(key, kind), protection))
        })
        .collect()
}

const SPDP: [u8; 3] = [0, 1, 0];
const STATELESS: [u8; 3] = [0, 2, 1];
const KEY_EXCHANGE: [u8; 3] = [0xff, 2, 2];
const SECURE_SPDP: [u8; 3] = [0xff, 1, 1];
const SECURE_PUBLICATIONS: [u8; 3] = [0xff, 0, 3];
const SECURE_SUBSCRIPTIONS: [u8; 3] = [0xff, 0, 4];
const SECURE_LIVELINESS: [u8; 3] = [0xff, 2, 0];
