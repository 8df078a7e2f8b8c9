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

use crate::change::ChangeKind;
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic};
use crate::discovery::data::{DataLimits, ParticipantData};
use crate::discovery::spdp;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::Submessage;

use super::authenticating::AuthenticatingParticipant;
use super::identity::has_identity;
use super::local_participant::LocalParticipant;
use super::remote_participants::RemoteParticipants;
use super::secure_discovery::{DISPOSE_BYTES, KEY_MESSAGES_MAX, SecureDiscovery};
use super::unvalidated_participant::{SourceCheck, check_source, route};
use super::{LostReason, Participant, ParticipantEvent, zones};
use crate::stats::Tally;

/// The smallest budget to begin a handshake with: the first message. For a
/// participant that has not proven to receive our datagrams.
const HANDSHAKE_BYTES: usize = 6_000;

impl Participant {
    /// Secure discovery; `None` without DDS Security.
    pub fn security(&self) -> Option<&SecureDiscovery> {
        self.local.builtin.secured.as_deref()
    }

    /// Secure discovery, to send its messages; `None` without DDS Security.
    pub fn security_mut(&mut self) -> Option<&mut SecureDiscovery> {
        self.local.builtin.secured.as_deref_mut()
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
        mut signed: Option<ParticipantData>,
    ) -> Option<Arc<ParticipantData>> {
        let secured = self.local.builtin.secured.as_ref()?;
        let newcomer = secured.authenticating.get(prefix)?;
        let (newcomer, source_check) = (newcomer.data.clone(), newcomer.source_check);
        if !self
            .remote
            .has_participant_place(&mut self.local, now, &newcomer, source_check)
        {
            return None;
        }
        let secured = self.local.builtin.secured.as_mut()?;
        let authenticating_peer = secured.authenticating.remove(prefix)?;
        let network = &self.local.config.network;
        if let Some(signed) = &mut signed {
            zones::add_to_participant(signed, None, Some(&authenticating_peer.data), network);
        }
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
            self.local.config.prefix,
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
        self.remote.grant_lease(&self.local, now, &data);
        self.remote.add_participant(
            &mut self.local,
            now,
            data.clone(),
            authenticating_peer.source_check,
        );
        Some(data)
    }

    /// Notes that [`send_key_message`](SecureDiscovery::send_key_message) got all keys that an
    /// admitted participant needs to decrypt our built-in endpoints.
    ///
    /// These match it as soon as it has acknowledged the keys, at once if there
    /// were none. A heartbeat that it cannot decrypt would be repeated, by every
    /// participant of a large system to every other.
    pub fn note_initial_keys_sent(&mut self, now: Instant, prefix: GuidPrefix) {
        let secured = self.local.builtin.secured.as_mut();
        if let Some(keys_sent) = secured.and_then(|own| own.awaiting_keys.get_mut(&prefix)) {
            *keys_sent = true;
        }
        self.remote
            .start_secure_topics(&mut self.local, now, prefix);
    }

    /// Handles an authenticated participant that repeats the handshake, since it
    /// had lost us. It is lost, and can be admitted again at once. False if it is
    /// not authenticated.
    pub fn reauthenticate(&mut self, prefix: GuidPrefix) -> bool {
        let Some(peer) = self.remote.peers.find(prefix) else {
            return false;
        };
        let (data, source_check) = (peer.data.clone(), peer.source_check());
        self.remote
            .remove_participant(&mut self.local, prefix, LostReason::Reauthenticating);
        let Some(secured) = &mut self.local.builtin.secured else {
            return false;
        };
        let route = route(
            &self.local.config.network,
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
        secured.end_handshake_of(evicted, &mut self.local.stats, &mut self.local.events);
        true
    }

    /// Sends a dispose to authenticated participants, before
    /// [`reset`](Self::reset).
    ///
    /// Best effort: a peer that misses it notices the reset itself. The dispose is
    /// also sent unprotected: Fast DDS 2.9 reads no other, and answers no handshake
    /// of a known participant.
    pub fn announce_reset(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(secured) = &mut self.local.builtin.secured {
            secured.send_dispose(now, out);
            self.local
                .spdp
                .transmit_dispose_to_peers(&self.remote.peers, out);
        }
    }

    /// Resets secure discovery after changed credentials or permissions.
    ///
    /// Authenticated participants are lost, authenticating ones are rejected, and
    /// all can be discovered again. We announce ourselves as soon as they have read
    /// the dispose. Returns these participants.
    pub fn reset(&mut self, now: Instant) -> Vec<GuidPrefix> {
        let Some(secured) = &mut self.local.builtin.secured else {
            return Vec::new();
        };
        let authenticating: Vec<GuidPrefix> = secured.authenticating.clear().collect();
        for prefix in &authenticating {
            secured.stateless.remove_peer(*prefix);
        }
        let lost: Vec<GuidPrefix> = secured.key_channels.keys().copied().collect();
        secured.announce(now, &self.local.spdp.data);
        for prefix in &lost {
            self.remote
                .remove_participant(&mut self.local, *prefix, LostReason::Reauthenticating);
        }
        self.local.spdp.restart(now);
        authenticating.into_iter().chain(lost).collect()
    }

    /// Sends an unprotected dispose to a participant that does not answer the
    /// handshake, and announces us again.
    ///
    /// Returns its locators for a
    /// [protected dispose](SecureDiscovery::write_protected_dispose). `None` if it is not
    /// authenticating, or has not proven to receive our datagrams.
    pub fn send_unprotected_dispose(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        out: &mut Outbox,
    ) -> Option<Arc<[Locator]>> {
        let secured = self.local.builtin.secured.as_mut()?;
        let authenticating_peer = secured.authenticating.get_mut(prefix)?;
        if !authenticating_peer.spend_budget(2 * DISPOSE_BYTES) {
            return None;
        }
        let at = &authenticating_peer.data.metatraffic_unicast;
        let to = route(
            &self.local.config.network,
            at,
            authenticating_peer.source_check,
        )
        .locators;
        self.local
            .spdp
            .write_dispose([(Some(prefix), to.clone())], out);
        self.local.spdp.restart(now);
        Some(to)
    }

    /// Notes a datagram addressed to us, even if its content was refused: its
    /// sender receives our datagrams.
    pub fn note_unicast_received(&mut self, now: Instant, from: Locator, prefix: GuidPrefix) {
        self.remote
            .promote(&mut self.local, now, Some(from), prefix);
        if let Some(secured) = &mut self.local.builtin.secured {
            secured.note_reachable(Some(from), prefix, &self.local.config.network);
        }
    }

    /// Removes an authenticated participant whose access was revoked.
    pub fn revoke_access(&mut self, prefix: GuidPrefix) {
        self.remote
            .remove_participant(&mut self.local, prefix, LostReason::AccessRevoked);
    }
}

impl RemoteParticipants {
    fn start_secure_topics(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
    ) {
        if local.builtin.match_with_keys(now, prefix, &self.peers) {
            self.share_with_peer(local, prefix);
        }
    }

    /// Begins to authenticate a participant that may wait for our handshake message
    /// (Fast DDS does), as soon as its amplification budget allows.
    pub(super) fn authenticate_early(&mut self, local: &mut LocalParticipant, prefix: GuidPrefix) {
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        let budget = participant.budget_bytes(&local.config.limits);
        let announced = &participant.data.metatraffic_unicast;
        let source_check = check_source(participant.from, announced, &local.config.network);
        let is_due = budget >= HANDSHAKE_BYTES && has_identity(&participant.data);
        let Some(secured) = &mut local.builtin.secured else {
            return;
        };
        if source_check == SourceCheck::Mismatch || !is_due {
            return;
        }
        if let Some(participant) = self.unvalidated.take(prefix) {
            let newcomer = AuthenticatingParticipant {
                data: participant.data,
                source_check,
                budget_bytes: Some(budget),
            };
            let network = &local.config.network;
            let (stats, events) = (&mut local.stats, &mut local.events);
            secured.require_authentication(newcomer, network, stats, events);
        }
    }

    /// Passes a submessage to the security endpoint it belongs to; false if there
    /// is none.
    pub(super) fn handle_secured(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        let limits = &local.config.limits;
        let Some(secured) = &mut local.builtin.secured else {
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
                local.events.push_back(event);
            }
            return true;
        }
        if message.writer() == Some(EntityId::VOLATILE_SECURE_WRITER) {
            if let Some(channel) = secured.key_channels.get_mut(&source.prefix) {
                channel.handle(now, source, message);
                while let Some(change) = channel.poll_change() {
                    if change.kind == ChangeKind::Alive {
                        local
                            .events
                            .push_back(ParticipantEvent::KeyExchangeMessage {
                                from: change.writer.prefix,
                                payload: change.payload,
                            });
                    }
                }
                self.start_secure_topics(local, now, source.prefix);
            }
            return true;
        }
        if !secured.announcements.handle(now, source, message) {
            return false;
        }
        while let Some(secured) = &mut local.builtin.secured
            && let Some(change) = secured.announcements.poll_change()
        {
            let from = change.writer.prefix;
            if change.kind != ChangeKind::Alive {
                self.remove_participant(local, from, LostReason::Disposed);
                continue;
            }
            self.handle_secured_announcement(local, now, from, &change.payload);
        }
        true
    }

    fn handle_secured_announcement(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        from: GuidPrefix,
        payload: &[u8],
    ) {
        let limits: &DataLimits = &local.config.limits.data;
        let Ok(mut data) = ParticipantData::parse_within(payload, limits) else {
            local.stats.malformed.tally();
            return;
        };
        if data.prefix != from {
            local.stats.impersonation.tally();
            return;
        }
        let Some(peer) = self.peers.find(from) else {
            return;
        };
        zones::add_to_participant(&mut data, None, Some(&peer.data), &local.config.network);
        let is_changed = *peer.data != data;
        let source_check = peer.source_check();
        if is_changed {
            self.update_participant(local, now, Arc::new(data), source_check);
        }
    }
}
