//! State of secure discovery: which participants are being authenticated, which are
//! authenticated, and which were refused. [`super::security`] advances it.

use alloc::collections::{BTreeMap, BTreeSet};
use bytes::Bytes;

use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic, earliest};
use crate::discovery::data::ParticipantData;
use crate::discovery::spdp;
use crate::discovery::stateless::Stateless;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::outbox::Outbox;
use crate::time::Instant;

use super::authenticating::AuthenticatingParticipants;
use super::config::SecurityConfig;

/// Key exchange messages to one peer in transit: one for each matching endpoint on
/// both sides.
pub(super) const KEY_MESSAGES_MAX: u32 = 1024;

/// Refused participants remembered, so that each is reported once. Beyond that all
/// are dropped.
pub(super) const REFUSED_MAX: usize = 64;

/// The state of secure discovery.
pub(super) struct SecureDiscovery {
    pub(super) prefix: GuidPrefix,
    pub(super) config: SecurityConfig,
    pub(super) authenticating: AuthenticatingParticipants,
    pub(super) refused: BTreeSet<GuidPrefix>,
    pub(super) stateless: Stateless,
    /// Key exchange with the authenticated participants. One channel each, so that
    /// every datagram has one receiver, whose key protects it.
    pub(super) key_channels: BTreeMap<GuidPrefix, BuiltinTopic>,
    /// Authenticated participants that have not received our first keys, and
    /// whether those are sent. Nothing that they cannot decrypt is sent to them.
    pub(super) awaiting_keys: BTreeMap<GuidPrefix, bool>,
    pub(super) announcements: BuiltinTopic,
}

impl SecureDiscovery {
    pub(super) fn new(
        now: Instant,
        config: SecurityConfig,
        data: &ParticipantData,
        authenticating_max: usize,
    ) -> Self {
        let mut secured = Self {
            prefix: data.prefix,
            authenticating: AuthenticatingParticipants::new(authenticating_max),
            refused: BTreeSet::new(),
            stateless: Stateless::new(data.prefix),
            key_channels: BTreeMap::new(),
            awaiting_keys: BTreeMap::new(),
            announcements: BuiltinTopic::new(
                data.prefix,
                BuiltinEndpoints {
                    writer: EntityId::SECURE_SPDP_WRITER,
                    reader: EntityId::SECURE_SPDP_READER,
                    writer_bit: spdp::SECURE_SPDP_WRITER,
                    reader_bit: spdp::SECURE_SPDP_READER,
                },
            ),
            config,
        };
        secured.announce(now, data);
        secured
    }

    /// Sends the secured announcement to authenticated participants.
    pub(super) fn announce(&mut self, now: Instant, data: &ParticipantData) {
        let mut data = data.clone();
        data.user_data.clone_from(&self.config.user_data);
        let key = data.guid().to_bytes();
        self.announcements.publish(now, key, data.encode());
    }

    /// Whether its plain announcements are ignored.
    pub(super) fn ignores_plain_announcements(&self, prefix: GuidPrefix) -> bool {
        self.is_authenticated(prefix) || self.authenticating.contains(prefix)
    }

    /// Whether it is authenticated.
    pub(super) fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        self.key_channels.contains_key(&prefix)
    }

    /// Notes a refused participant; true for the first time.
    pub(super) fn note_refused(&mut self, prefix: GuidPrefix) -> bool {
        if self.refused.len() >= REFUSED_MAX && !self.refused.contains(&prefix) {
            self.refused.clear();
        }
        self.refused.insert(prefix)
    }

    pub(super) fn remove_peer(&mut self, prefix: GuidPrefix) {
        self.authenticating.remove(prefix);
        self.key_channels.remove(&prefix);
        self.awaiting_keys.remove(&prefix);
        self.stateless.remove_peer(prefix);
        self.announcements.unmatch_peer(prefix);
    }

    pub(super) fn channels(&mut self) -> impl Iterator<Item = &mut BuiltinTopic> {
        let keys = self.key_channels.values_mut();
        keys.chain(core::iter::once(&mut self.announcements))
    }

    pub(super) fn reroute(&mut self, prefix: GuidPrefix, route: &Route) {
        for channel in self.channels() {
            channel.reroute(prefix, route);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for channel in self.channels() {
            channel.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let keys = self.key_channels.values().map(BuiltinTopic::next_timeout);
        let all = keys.chain(core::iter::once(self.announcements.next_timeout()));
        all.fold(None, earliest)
    }

    /// True if there is more to send.
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let mut more = self.stateless.poll_transmit(out);
        for channel in self.channels() {
            more |= channel.poll_transmit(now, out);
        }
        more
    }

    /// Sends the protected dispose to authenticated participants.
    pub(super) fn send_dispose(&mut self, now: Instant, out: &mut Outbox) {
        let key = self.prefix.with(EntityId::PARTICIPANT).to_bytes();
        let key_only = ParticipantData::encode_key(self.prefix);
        self.announcements.dispose(now, key, key_only);
        self.announcements.poll_transmit(now, out);
    }
}

/// Whether it announces an identity.
pub(super) fn has_identity(data: &ParticipantData) -> bool {
    let has_endpoint = data.builtin_endpoints & spdp::STATELESS_WRITER != 0;
    // Some set the bits without a token, so both are required.
    has_endpoint && has_identity_token(data)
}

/// Whether it announces the token of an identity, with or without endpoints to prove it.
pub(super) fn has_identity_token(data: &ParticipantData) -> bool {
    let is_token = |(id, _): &(u16, Bytes)| *id == crate::wire::pid::IDENTITY_TOKEN;
    data.security_tokens.iter().any(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::pid;

    #[test]
    fn an_identity_is_announced_by_its_token_and_its_endpoint_together() {
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.builtin_endpoints |= spdp::STATELESS_WRITER;
        assert!(!has_identity(&data));
        let token = |id| (id, Bytes::from_static(&[0; 8]));
        data.security_tokens = alloc::vec![token(pid::PERMISSIONS_TOKEN)];
        assert!(!has_identity(&data));
        data.security_tokens.push(token(pid::IDENTITY_TOKEN));
        assert!(has_identity(&data));
        data.builtin_endpoints &= !spdp::STATELESS_WRITER;
        assert!(!has_identity(&data));
    }
}
