//! Secure discovery: authentication of remote participants (DDS Security 1.1 §8.8).
//!
//! A participant that announces an identity and has answered is *authenticating*.
//! Its owner gets an event, carries the messages of the authentication handshake,
//! and admits or rejects it. Until then nothing else is sent to it. After admission
//! its plain announcements no longer count, only its secured ones. So nobody
//! without its keys can remove or move it.
//!
//! The key exchange with an admitted participant has a reliable topic of its own.
//! Encryption and decryption (crypto transform) happen in the owner, on the way to
//! the sockets. No message arrives here with less protection than its endpoint
//! requires.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::change::ChangeKind;
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic};
use crate::discovery::data::{DataLimits, ParticipantData};
use crate::discovery::spdp;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::{DataHead, Submessage};

use super::authenticating::AuthenticatingParticipant;
use super::secure_discovery::{KEY_MESSAGES_MAX, has_identity};
use super::unvalidated_participant::{SourceCheck, check_source, route};
use super::{LostReason, Participant, ParticipantEvent};
use crate::stats::Tally;

/// The smallest budget to begin a handshake with: the first message. For a
/// participant that has not proven to receive our datagrams.
const HANDSHAKE_BYTES: usize = 6_000;

/// The size of a protected dispose to one participant, rounded up.
const DISPOSE_BYTES: usize = 400;

impl Participant {
    /// Whether a participant is authenticated.
    pub fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        self.secured
            .as_ref()
            .is_some_and(|own| own.is_authenticated(prefix))
    }

    /// Sends a handshake message to a participant, once. False if it is unknown, or
    /// the queue is full: the message is lost then, as on the network.
    pub fn send_handshake_message(&mut self, to: GuidPrefix, payload: Bytes) -> bool {
        let Some(secured) = &mut self.secured else {
            return false;
        };
        let authenticating_peer = secured.authenticating.get_mut(to);
        let spend_budget = authenticating_peer
            .is_none_or(|authenticating_peer| authenticating_peer.spend_budget(payload.len()));
        spend_budget && secured.stateless.send(to, payload)
    }

    /// Sends a key exchange message to an authenticated participant: reliable and
    /// in order, as long as it stays.
    pub fn send_key_message(&mut self, now: Instant, to: GuidPrefix, payload: Bytes) {
        let secured = self.secured.as_mut();
        if let Some(channel) = secured.and_then(|secured| secured.key_channels.get_mut(&to)) {
            channel.send(now, to, payload);
        }
    }

    /// Admits a participant after a successful authentication handshake and access
    /// control.
    ///
    /// Its signed data, if any, replaces its plain announcement. Returns its data
    /// from now on, or `None` if it is not authenticating, or the table is full.
    /// Until [`note_initial_keys_sent`](Self::note_initial_keys_sent) only keys are
    /// exchanged with it.
    pub fn admit(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        signed: Option<ParticipantData>,
    ) -> Option<Arc<ParticipantData>> {
        let secured = self.secured.as_ref()?;
        let newcomer = secured.authenticating.get(prefix)?;
        let (newcomer, source_check) = (newcomer.data.clone(), newcomer.source_check);
        if !self.has_participant_place(now, &newcomer, source_check) {
            return None;
        }
        let secured = self.secured.as_mut()?;
        let authenticating_peer = secured.authenticating.remove(prefix)?;
        let network = &self.config.network;
        let reachable = |data: &ParticipantData| {
            let route = route(
                network,
                &data.metatraffic_unicast,
                authenticating_peer.source_check,
            );
            data.prefix == prefix && !route.locators.is_empty()
        };
        let data = match signed.filter(reachable) {
            // Its tokens and bits may not be part of the signed data. Nor is its
            // host id: a shared-memory connection proves that.
            Some(signed) => Arc::new(ParticipantData {
                properties: authenticating_peer.data.properties.clone(),
                builtin_endpoints: authenticating_peer.data.builtin_endpoints,
                security_tokens: authenticating_peer.data.security_tokens.clone(),
                vendor: authenticating_peer.data.vendor,
                version: authenticating_peer.data.version,
                ..signed
            }),
            None => authenticating_peer.data,
        };
        let at = route(
            network,
            &data.metatraffic_unicast,
            authenticating_peer.source_check,
        );
        secured.awaiting_keys.insert(prefix, false);
        let mut keys = BuiltinTopic::volatile(
            self.config.prefix,
            BuiltinEndpoints {
                writer: EntityId::VOLATILE_SECURE_WRITER,
                reader: EntityId::VOLATILE_SECURE_READER,
                writer_bit: spdp::VOLATILE_SECURE_WRITER,
                reader_bit: spdp::VOLATILE_SECURE_READER,
            },
            KEY_MESSAGES_MAX,
        );
        keys.match_peer(now, &data, &at);
        secured.key_channels.insert(prefix, keys);
        self.grant_lease(now, &data);
        self.add_participant(now, data.clone(), authenticating_peer.source_check);
        Some(data)
    }

    /// Notes that [`send_key_message`](Self::send_key_message) got all keys that an
    /// admitted participant needs to decrypt our built-in endpoints.
    ///
    /// These match it as soon as it has acknowledged the keys, at once if there
    /// were none. A heartbeat that it cannot decrypt would be repeated, by every
    /// participant of a large system to every other.
    pub fn note_initial_keys_sent(&mut self, now: Instant, prefix: GuidPrefix) {
        let secured = self.secured.as_mut();
        if let Some(keys_sent) = secured.and_then(|own| own.awaiting_keys.get_mut(&prefix)) {
            *keys_sent = true;
        }
        self.start_secure_topics(now, prefix);
    }

    /// Whether our built-in endpoints send nothing to one, since it could not
    /// decrypt it.
    pub(super) fn is_awaiting_keys(&self, prefix: GuidPrefix) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|secured| secured.awaiting_keys.contains_key(&prefix))
    }

    fn start_secure_topics(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(secured) = &mut self.secured else {
            return;
        };
        let keys_sent = secured.awaiting_keys.get(&prefix) == Some(&true);
        let keys = secured.key_channels.get(&prefix);
        if !keys_sent || keys.is_some_and(|keys| !keys.is_acked()) {
            return;
        }
        secured.awaiting_keys.remove(&prefix);
        if let Some(peer) = self.peers.find(prefix) {
            let (data, at) = (peer.data.clone(), peer.metatraffic.clone());
            secured.announcements.match_peer(now, &data, &at);
            self.sedp.match_peer(now, &data, &at, true);
            self.wlp.match_peer(now, &data, &at, true);
            self.charge_built_in_readers(prefix);
            self.share_retransmission_window(prefix);
        }
    }

    /// The built-in topics of authenticated participants that a participant is matched
    /// on, without SEDP and WLP.
    pub(super) fn secure_topics_of(
        &mut self,
        prefix: GuidPrefix,
    ) -> impl Iterator<Item = &mut BuiltinTopic> {
        let secured = self.secured.iter_mut();
        secured.flat_map(move |secured| {
            let keys = secured.key_channels.get_mut(&prefix);
            keys.into_iter().chain([&mut secured.announcements])
        })
    }

    /// Handles an authenticated participant that repeats the handshake, since it
    /// had lost us. It is lost, and can be admitted again at once. False if it is
    /// not authenticated.
    pub fn reauthenticate(&mut self, prefix: GuidPrefix) -> bool {
        let Some(peer) = self.peers.find(prefix) else {
            return false;
        };
        let (data, source_check) = (peer.data.clone(), peer.source_check());
        self.remove_participant(prefix, LostReason::Reauthenticating);
        let Some(secured) = &mut self.secured else {
            return false;
        };
        let route = route(
            &self.config.network,
            &data.metatraffic_unicast,
            source_check,
        );
        secured.stateless.add_peer(prefix, route);
        let authenticating_peer = AuthenticatingParticipant {
            data,
            source_check,
            budget_bytes: None,
        };
        let evicted = secured.authenticating.insert(authenticating_peer);
        self.end_handshake_of(evicted);
        true
    }

    /// Sends a dispose to authenticated participants, before
    /// [`reset`](Self::reset).
    ///
    /// Best effort: a peer that misses it notices the reset itself. The dispose is
    /// also sent unprotected: Fast DDS 2.9 reads no other, and answers no handshake
    /// of a known participant.
    pub fn announce_reset(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(secured) = &mut self.secured {
            secured.send_dispose(now, out);
            self.transmit_dispose_to_peers(out);
        }
    }

    /// Resets secure discovery after changed credentials or permissions.
    ///
    /// Authenticated participants are lost, authenticating ones are rejected, and
    /// all can be discovered again. We announce ourselves as soon as they have read
    /// the dispose. Returns these participants.
    pub fn reset(&mut self, now: Instant) -> Vec<GuidPrefix> {
        let Some(secured) = &mut self.secured else {
            return Vec::new();
        };
        let authenticating: Vec<GuidPrefix> = secured.authenticating.clear().collect();
        for prefix in &authenticating {
            secured.stateless.remove_peer(*prefix);
        }
        let lost: Vec<GuidPrefix> = secured.key_channels.keys().copied().collect();
        secured.announce(now, &self.data);
        for prefix in &lost {
            self.remove_participant(*prefix, LostReason::Reauthenticating);
        }
        self.announcer.restart(now, &self.data);
        authenticating.into_iter().chain(lost).collect()
    }

    /// Writes the dispose that a lost authenticated participant would accept,
    /// without a destination.
    ///
    /// The owner protects it while its keys are known. If that participant returns,
    /// does not answer, and so seems to keep our state, it is
    /// [sent](Self::send_unprotected_dispose).
    pub fn write_protected_dispose(&self, lost: GuidPrefix, out: &mut Outbox) {
        if let Some(secured) = &self.secured {
            let head = secured.announcements.next_data_head();
            let guid = self.config.prefix.with(EntityId::PARTICIPANT);
            let head = DataHead {
                inline_qos: spdp::dispose_head(head.sequence, guid).inline_qos,
                key_only: true,
                ..head
            };
            let payload = ParticipantData::encode_key(self.config.prefix);
            let nowhere: Arc<[Locator]> = Arc::from([]);
            let mut message = out.begin(self.config.prefix, &nowhere, DISPOSE_BYTES);
            message.info_destination(lost);
            message.data(&head, &payload);
            message.finish();
        }
    }

    /// Sends an unprotected dispose to a participant that does not answer the
    /// handshake, and announces us again.
    ///
    /// Returns its locators for a
    /// [protected dispose](Self::write_protected_dispose). `None` if it is not
    /// authenticating, or has not proven to receive our datagrams.
    pub fn send_unprotected_dispose(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        out: &mut Outbox,
    ) -> Option<Arc<[Locator]>> {
        let secured = self.secured.as_mut()?;
        let authenticating_peer = secured.authenticating.get_mut(prefix)?;
        if !authenticating_peer.spend_budget(2 * DISPOSE_BYTES) {
            return None;
        }
        let at = &authenticating_peer.data.metatraffic_unicast;
        let to = route(&self.config.network, at, authenticating_peer.source_check).locators;
        self.write_dispose([(Some(prefix), to.clone())], out);
        self.announcer.restart(now, &self.data);
        Some(to)
    }

    /// Rejects a participant after a failed handshake or access control. It is
    /// dropped until it announces itself again.
    pub fn reject(&mut self, prefix: GuidPrefix) {
        if let Some(secured) = &mut self.secured
            && secured.authenticating.remove(prefix).is_some()
        {
            secured.stateless.remove_peer(prefix);
        }
    }

    /// Notes a datagram addressed to us, even if its content was refused: its
    /// sender receives our datagrams.
    pub fn note_unicast_received(&mut self, now: Instant, from: Locator, prefix: GuidPrefix) {
        self.promote(now, Some(from), prefix);
        self.note_reachable(Some(from), prefix);
    }

    /// Removes an authenticated participant whose access was revoked.
    pub fn revoke_access(&mut self, prefix: GuidPrefix) {
        self.remove_participant(prefix, LostReason::AccessRevoked);
    }

    /// Whether to answer a new participant, according to its announcement.
    pub(super) fn is_admissible(&mut self, data: &ParticipantData) -> bool {
        let Some(secured) = &mut self.secured else {
            return true;
        };
        if secured.config.allow_unauthenticated || has_identity(data) {
            return true;
        }
        self.stats.unauthenticated.tally();
        if secured.note_refused(data.prefix) {
            let data = Arc::new(data.clone());
            self.events
                .push_back(ParticipantEvent::Unauthenticated(data));
        }
        false
    }

    /// Begins to authenticate a participant that may wait for our handshake message
    /// (Fast DDS does), as soon as its amplification budget allows.
    pub(super) fn authenticate_early(&mut self, prefix: GuidPrefix) {
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        let budget = participant.budget_bytes(&self.config.limits);
        let announced = &participant.data.metatraffic_unicast;
        let source_check = check_source(participant.from, announced, &self.config.network);
        let is_due = budget >= HANDSHAKE_BYTES && has_identity(&participant.data);
        if self.secured.is_none() || source_check == SourceCheck::Mismatch || !is_due {
            return;
        }
        if let Some(participant) = self.unvalidated.take(prefix) {
            self.require_authentication(&participant.data, source_check, Some(budget));
        }
    }

    /// Notes a message addressed to us from an authenticating participant: it
    /// receives our datagrams.
    pub(super) fn note_reachable(&mut self, from: Option<Locator>, prefix: GuidPrefix) {
        let secured = self.secured.as_mut();
        let authenticating_peer =
            secured.and_then(|secured| secured.authenticating.get_mut(prefix));
        if let Some(authenticating_peer) = authenticating_peer
            .filter(|authenticating_peer| authenticating_peer.budget_bytes.is_some())
        {
            let announced = &authenticating_peer.data.metatraffic_unicast;
            if check_source(from, announced, &self.config.network) != SourceCheck::Mismatch {
                authenticating_peer.budget_bytes = None;
            }
        }
    }

    /// Begins to authenticate a participant that has answered, or that gets at most
    /// `budget_bytes` until it does. False if it need not authenticate.
    pub(super) fn require_authentication(
        &mut self,
        data: &Arc<ParticipantData>,
        source_check: SourceCheck,
        budget_bytes: Option<usize>,
    ) -> bool {
        let Some(secured) = &mut self.secured else {
            return false;
        };
        if !has_identity(data) {
            return false;
        }
        let route = route(
            &self.config.network,
            &data.metatraffic_unicast,
            source_check,
        );
        secured.stateless.add_peer(data.prefix, route);
        let data = data.clone();
        let event = ParticipantEvent::AuthenticationNeeded(data.clone());
        let authenticating_peer = AuthenticatingParticipant {
            data,
            source_check,
            budget_bytes,
        };
        let evicted = secured.authenticating.insert(authenticating_peer);
        // First: the owner keeps as many handshakes as this table has places.
        self.end_handshake_of(evicted);
        self.events.push_back(event);
        true
    }

    /// Ends the handshake of a participant that lost its place. It may announce
    /// itself again.
    fn end_handshake_of(&mut self, evicted: Option<GuidPrefix>) {
        if let Some(prefix) = evicted {
            self.stats.handshakes_evicted.tally();
            if let Some(secured) = &mut self.secured {
                secured.stateless.remove_peer(prefix);
            }
            let event = ParticipantEvent::AuthenticationAbandoned(prefix);
            self.events.push_back(event);
        }
    }

    /// Passes a submessage to the security endpoint it belongs to; false if there
    /// is none.
    pub(super) fn handle_secured(
        &mut self,
        now: Instant,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        let limits = &self.config.limits;
        let Some(secured) = &mut self.secured else {
            return false;
        };
        if secured.stateless.handle(source, message) {
            while let Some((from, payload)) = secured.stateless.poll_message() {
                if let Some(authenticating_peer) = secured.authenticating.get_mut(from)
                    && let Some(budget) = &mut authenticating_peer.budget_bytes
                {
                    let more = payload.len().saturating_mul(limits.amplification_factor);
                    *budget = budget.saturating_add(more);
                }
                let event = ParticipantEvent::StatelessMessage { from, payload };
                self.events.push_back(event);
            }
            return true;
        }
        if message.writer() == Some(EntityId::VOLATILE_SECURE_WRITER) {
            if let Some(channel) = secured.key_channels.get_mut(&source.prefix) {
                channel.handle(now, source, message);
                while let Some(change) = channel.poll_change() {
                    if change.kind == ChangeKind::Alive {
                        self.events.push_back(ParticipantEvent::KeyExchangeMessage {
                            from: change.writer.prefix,
                            payload: change.payload,
                        });
                    }
                }
                self.start_secure_topics(now, source.prefix);
            }
            return true;
        }
        if !secured.announcements.handle(now, source, message) {
            return false;
        }
        while let Some(secured) = &mut self.secured
            && let Some(change) = secured.announcements.poll_change()
        {
            let from = change.writer.prefix;
            if change.kind != ChangeKind::Alive {
                self.remove_participant(from, LostReason::Disposed);
                continue;
            }
            self.handle_secured_announcement(now, from, &change.payload);
        }
        true
    }

    fn handle_secured_announcement(&mut self, now: Instant, from: GuidPrefix, payload: &[u8]) {
        let limits: &DataLimits = &self.config.limits.data;
        let Ok(data) = ParticipantData::parse_within(payload, limits) else {
            self.stats.malformed.tally();
            return;
        };
        if data.prefix != from {
            self.stats.impersonation.tally();
            return;
        }
        let Some(peer) = self.peers.find(from) else {
            return;
        };
        let is_changed = *peer.data != data;
        let source_check = peer.source_check();
        if is_changed {
            self.update_participant(now, Arc::new(data), source_check);
        }
    }

    /// Removes all state of a participant here.
    pub(super) fn remove_from_security(&mut self, prefix: GuidPrefix) {
        if let Some(secured) = &mut self.secured {
            secured.remove_peer(prefix);
        }
    }
}
