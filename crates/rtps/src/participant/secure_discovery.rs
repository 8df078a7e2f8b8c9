//! State of secure discovery: which participants are being authenticated, which are
//! authenticated, and which were refused. [`super::security`] advances it.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use bytes::Bytes;

use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic, earliest};
use crate::discovery::data::ParticipantData;
use crate::discovery::spdp;
use crate::discovery::stateless::Stateless;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::{Locator, NetworkScope, Route};
use crate::outbox::Outbox;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::DataHead;

use super::authenticating::{AuthenticatingParticipant, AuthenticatingParticipants};
use super::config::SecurityConfig;
use super::identity::has_identity;
use super::unvalidated_participant::{SourceCheck, check_source, route};
use super::{ParticipantEvent, ParticipantStats};

/// Key exchange messages to one peer in transit: one for each matching endpoint on
/// both sides.
pub(super) const KEY_MESSAGES_MAX: u32 = 1024;

/// Refused participants remembered, so that each is reported once. Beyond that all
/// are dropped.
pub(super) const REFUSED_MAX: usize = 64;

/// The size of a protected dispose to one participant, rounded up.
pub(super) const DISPOSE_BYTES: usize = 400;

/// The state of secure discovery.
pub struct SecureDiscovery {
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
    pub fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        self.key_channels.contains_key(&prefix)
    }

    /// Notes a refused participant; true for the first time.
    pub(super) fn note_refused(&mut self, prefix: GuidPrefix) -> bool {
        if self.refused.len() >= REFUSED_MAX && !self.refused.contains(&prefix) {
            self.refused.clear();
        }
        self.refused.insert(prefix)
    }

    /// Sends a handshake message to a participant, once. False if it is unknown, or
    /// the queue is full: the message is lost then, as on the network.
    pub fn send_handshake_message(&mut self, to: GuidPrefix, payload: Bytes) -> bool {
        let authenticating_peer = self.authenticating.get_mut(to);
        let spend_budget = authenticating_peer
            .is_none_or(|authenticating_peer| authenticating_peer.spend_budget(payload.len()));
        spend_budget && self.stateless.send(to, payload)
    }

    /// Sends a key exchange message to an authenticated participant: reliable and
    /// in order, as long as it stays.
    pub fn send_key_message(&mut self, now: Instant, to: GuidPrefix, payload: Bytes) {
        if let Some(channel) = self.key_channels.get_mut(&to) {
            channel.send(now, to, payload);
        }
    }

    /// Writes the dispose that a lost authenticated participant would accept,
    /// without a destination.
    ///
    /// The owner protects it while its keys are known. If that participant returns,
    /// does not answer, and so seems to keep our state, it is
    /// [sent](super::Participant::send_unprotected_dispose).
    pub fn write_protected_dispose(&self, lost: GuidPrefix, out: &mut Outbox) {
        let head = self.announcements.next_data_head();
        let guid = self.prefix.with(EntityId::PARTICIPANT);
        let head = DataHead {
            inline_qos: spdp::dispose_head(head.sequence, guid).inline_qos,
            key_only: true,
            ..head
        };
        let payload = ParticipantData::encode_key(self.prefix);
        let nowhere: Arc<[Locator]> = Arc::from([]);
        let mut message = out.begin(self.prefix, &nowhere, DISPOSE_BYTES);
        message.info_destination(lost);
        message.data(&head, &payload);
        message.finish();
    }

    /// Rejects a participant after a failed handshake or access control. It is
    /// dropped until it announces itself again.
    pub fn reject(&mut self, prefix: GuidPrefix) {
        if self.authenticating.remove(prefix).is_some() {
            self.stateless.remove_peer(prefix);
        }
    }

    /// Whether to answer a new participant, according to its announcement.
    pub(super) fn is_admissible(
        &mut self,
        data: &ParticipantData,
        stats: &mut ParticipantStats,
        events: &mut VecDeque<ParticipantEvent>,
    ) -> bool {
        if self.config.allow_unauthenticated || has_identity(data) {
            return true;
        }
        stats.unauthenticated.tally();
        if self.note_refused(data.prefix) {
            let data = Arc::new(data.clone());
            events.push_back(ParticipantEvent::Unauthenticated(data));
        }
        false
    }

    /// Notes a message addressed to us from an authenticating participant: it
    /// receives our datagrams.
    pub(super) fn note_reachable(
        &mut self,
        from: Option<Locator>,
        prefix: GuidPrefix,
        network: &NetworkScope,
    ) {
        let authenticating_peer = self.authenticating.get_mut(prefix);
        if let Some(authenticating_peer) = authenticating_peer
            .filter(|authenticating_peer| authenticating_peer.budget_bytes.is_some())
        {
            let announced = &authenticating_peer.data.metatraffic_unicast;
            if check_source(from, announced, network) != SourceCheck::Mismatch {
                authenticating_peer.budget_bytes = None;
            }
        }
    }

    /// Begins to authenticate a participant that has answered, or that gets at most its
    /// budget until it does. False if it need not authenticate.
    pub(super) fn require_authentication(
        &mut self,
        newcomer: AuthenticatingParticipant,
        network: &NetworkScope,
        stats: &mut ParticipantStats,
        events: &mut VecDeque<ParticipantEvent>,
    ) -> bool {
        let data = newcomer.data.clone();
        if !has_identity(&data) {
            return false;
        }
        let at = route(network, &data.metatraffic_unicast, newcomer.source_check);
        self.stateless.add_peer(data.prefix, at);
        let evicted = self.authenticating.insert(newcomer);
        // First: the owner keeps as many handshakes as this table has places.
        self.end_handshake_of(evicted, stats, events);
        events.push_back(ParticipantEvent::AuthenticationNeeded(data));
        true
    }

    /// Ends the handshake of a participant that lost its place. It may announce
    /// itself again.
    pub(super) fn end_handshake_of(
        &mut self,
        evicted: Option<GuidPrefix>,
        stats: &mut ParticipantStats,
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        if let Some(prefix) = evicted {
            stats.handshakes_evicted.tally();
            self.stateless.remove_peer(prefix);
            let event = ParticipantEvent::AuthenticationAbandoned(prefix);
            events.push_back(event);
        }
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
