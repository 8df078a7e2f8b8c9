//! Which protection an endpoint requires, and which role its entity id gives it.

use pteros_rtps::id::EntityId;

use crate::attributes::SecurityInfo;
use crate::crypto::TransformKind;
use crate::governance::{DomainRule, PayloadProtection, Protection};

/// Protection of an endpoint's submessages and payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndpointProtection {
    pub submessage: Protection,
    pub payload: PayloadProtection,
}

impl EndpointProtection {
    /// From the security attributes that an endpoint announces.
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

    /// Of a built-in endpoint, which has protected submessages only.
    pub fn of_builtin(submessage: Protection) -> Self {
        Self {
            submessage,
            payload: PayloadProtection::None,
        }
    }

    /// The protection of this sender's submessages. A reader's ACKNACKs have no
    /// payload.
    pub fn of_sender(self, sender: EntityId) -> Self {
        if sender.is_reader() {
            Self::of_builtin(self.submessage)
        } else {
            self
        }
    }

    pub fn is_none(self) -> bool {
        !self.submessage.is_on() && self.payload == PayloadProtection::None
    }
}

/// The transformation for this protection, with 256-bit keys.
pub(super) fn transformation(encrypts: bool) -> TransformKind {
    if encrypts {
        TransformKind::Aes256Gcm
    } else {
        TransformKind::Aes256Gmac
    }
}

/// Role of an endpoint, by its entity id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointRole {
    /// SPDP and the authentication handshake: used before there are keys.
    Bootstrap,
    /// The key exchange (volatile secure) endpoints, protected with the
    /// key-exchange key.
    KeyExchange,
    /// A secured built-in endpoint.
    Secured,
    /// Any other built-in endpoint: SEDP, liveliness, TypeLookup.
    Builtin,
    /// A user's endpoint.
    User,
}

impl EndpointRole {
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

/// The secured built-in endpoints, and how this rule protects them. That may be no
/// protection, where the rule uses them for some topics nevertheless.
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
