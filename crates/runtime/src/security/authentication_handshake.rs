//! The authentication handshake with unauthenticated participants (DDS Security 1.1
//! §8.3).

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{LostReason, Participant, ParticipantEvent};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::pid;
use pteros_security::attributes::SecurityInfo;
use pteros_security::auth::{AuthenticatedPeer, GenericMessage, HandshakeEvent, Token};
use pteros_security::certificate::Certificate;
use pteros_security::crypto::KeyMaterial;
use pteros_security::crypto_transform::SealedDatagrams;
use pteros_security::permissions::access_control::AccessControl;

use super::credentials::to_unix_time;
use super::{AdmittedPeer, REMEMBERED_MAX, Security, SecurityState};
use crate::platform::ReceivedDatagram;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::back_pressure::{BlockingBudget, GOODBYE_WAIT};

/// Handshake back-off after a peer's permissions were rejected.
const REFUSAL_BACKOFF: Duration = Duration::from_secs(30);

impl Security {
    /// Handles discovery events of unauthenticated participants. Results are sent
    /// with the next messages of the participant. Matches may get their keys
    /// ([`Security::take_ready_match`]).
    pub(crate) fn handle_event(&self, now: Instant, event: &ParticipantEvent) {
        let mut state = self.state.lock();
        match event {
            ParticipantEvent::AuthenticationNeeded(data) => {
                let own_info = SecurityInfo::of_participant(self.access().domain_rule());
                if !state.begin_handshake(now, data, own_info) {
                    reject(&mut self.parts.participant.lock(), data.prefix);
                }
            }
            ParticipantEvent::AuthenticationAbandoned(prefix) => {
                state.handshakes.remove_peer(*prefix);
                if state.refusal_log.admits(now) {
                    tracing::warn!(
                        "more participants authenticate than there are places; the handshake \
                         with {prefix} is ended, and begins again with its next announcement"
                    );
                }
            }
            ParticipantEvent::Unauthenticated(data) => {
                let why = "it announces no identity, and the governance has \
                           allow_unauthenticated_participants false";
                state.report(now, data.prefix, why.into());
            }
            ParticipantEvent::StatelessMessage { payload, .. } => {
                // The message names its sender; the handshake proves it, or the
                // message is worthless.
                if let Some(message) = GenericMessage::from_payload(payload) {
                    let wall = to_unix_time(self.parts.platform.wall_clock());
                    state.handshakes.handle_message(message, now, wall);
                }
            }
            ParticipantEvent::ParticipantDiscovered(data) => {
                if !state.peers.contains_key(&data.prefix) {
                    // The governance allows it, otherwise it would not be matched.
                    let _ = self.crypto_transform.add_unauthenticated(data.prefix);
                }
            }
            ParticipantEvent::KeyExchangeMessage { from, payload } => {
                drop(state);
                self.handle_keys(*from, payload);
                return;
            }
            ParticipantEvent::EndpointLost(guid) => {
                self.crypto_transform.remove_remote_endpoint(*guid)
            }
            ParticipantEvent::EndpointChanged { remote, route } => {
                state.update_pending_route(remote, route);
            }
            // Already handled, with the new keys.
            ParticipantEvent::ParticipantLost {
                reason: LostReason::Reauthenticating,
                ..
            } => {}
            ParticipantEvent::ParticipantLost { prefix, reason } => {
                if *reason == LostReason::LeaseExpired {
                    self.keep_goodbye(&mut state, *prefix);
                }
                self.crypto_transform.remove_participant(*prefix);
                state.peers.remove(prefix);
                state.handshakes.remove_peer(*prefix);
            }
            _ => return,
        }
        self.serve_handshakes(now, &mut state);
    }

    /// Handles a datagram before the crypto transform. A peer that replies before
    /// it knows that it must authenticate still shows that it receives us (locator
    /// validation). Returns whether it did; then serve the participant.
    pub(crate) fn note_unprotected_datagram(
        &self,
        now: Instant,
        datagram: &[u8],
        received: &ReceivedDatagram,
    ) -> bool {
        if !self.has_unvalidated.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(mut message) = MessageReader::new(datagram, self.prefix) else {
            return false;
        };
        let prefix = message.header().prefix;
        let is_reply =
            message.any(|(source, _)| source.destination == self.prefix && source.prefix == prefix);
        if is_reply {
            let from = received.from;
            let mut participant = self.parts.participant.lock();
            participant.note_unicast_received(now, from, prefix);
        }
        is_reply
    }

    /// Handles timeouts of the handshakes. Returns whether the permissions of this
    /// context may have changed.
    pub(crate) fn handle_timeout(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.handshakes.handle_timeout(now);
        let may_have_changed = self.revalidate(now, &mut state);
        self.serve_handshakes(now, &mut state);
        may_have_changed
    }

    fn serve_handshakes(&self, now: Instant, state: &mut SecurityState) {
        while let Some(event) = state.handshakes.poll_event() {
            match event {
                HandshakeEvent::Authenticated {
                    prefix,
                    peer,
                    secret,
                } => {
                    let admitted =
                        self.check_authenticated(state, *peer)
                            .and_then(|(admitted, signed)| {
                                let kx = secret.key_exchange_material();
                                let data = self.admit(now, prefix, signed, kx)?;
                                Ok((admitted, data))
                            });
                    match admitted {
                        Ok((admitted, data)) => {
                            tracing::info!("participant {prefix} is {}", admitted.subject);
                            state.reported.remove(&prefix);
                            state.goodbyes.remove(&prefix);
                            if state.has_own_identity(&admitted) {
                                self.crypto_transform.enable_shared_memory(prefix);
                            }
                            state.peers.insert(prefix, admitted);
                            self.send_participant_keys(now, &data);
                        }
                        Err(why) => {
                            state.report(now, prefix, why);
                            state.back_off(prefix, now);
                            self.crypto_transform.remove_participant(prefix);
                            let mut participant = self.parts.participant.lock();
                            match state.peers.remove(&prefix) {
                                Some(_) => participant.revoke_access(prefix),
                                None => reject(&mut participant, prefix),
                            }
                        }
                    };
                }
                HandshakeEvent::Failed {
                    prefix,
                    rejection: why,
                } => {
                    state.report(now, prefix, why.to_string());
                    self.send_goodbye(now, state, prefix);
                    reject(&mut self.parts.participant.lock(), prefix);
                }
            }
        }
        let mut participant = self.parts.participant.lock();
        while let Some((to, message)) = state.handshakes.poll_transmit() {
            if let Some(security) = participant.security_mut() {
                security.send_handshake_message(to, Bytes::from(message.to_payload()));
            }
        }
        drop(participant);
        let check = state.next_check;
        let next = state.handshakes.deadline();
        let next = next.map_or(check, |deadline| deadline.min(check));
        self.parts
            .scheduler
            .schedule(TimeoutOwner::Handshakes, Some(next));
    }

    /// Keeps a protected goodbye for a lost participant that may still know us, while its
    /// keys are known.
    pub(super) fn keep_goodbye(&self, state: &mut SecurityState, prefix: GuidPrefix) {
        if !state.peers.contains_key(&prefix) {
            return;
        }
        let mut outbox = Outbox::new();
        if let Some(security) = self.parts.participant.lock().security() {
            security.write_protected_dispose(prefix, &mut outbox);
        }
        let mut sealed = SealedDatagrams::default();
        for datagram in outbox.iter() {
            if self
                .crypto_transform
                .seal(&datagram.parts, &mut sealed)
                .is_err()
            {
                return;
            }
        }
        if state.goodbyes.len() >= REMEMBERED_MAX {
            state.goodbyes.clear();
        }
        let bytes = sealed.datagrams().next();
        let bytes = bytes.map(|bytes| (prefix, bytes.to_vec()));
        state.goodbyes.extend(bytes);
    }

    /// Sends the goodbye to a returned participant that does not reply. Cyclone DDS and
    /// Fast DDS behave so while they still know us. The participant then discovers us
    /// again.
    fn send_goodbye(&self, now: Instant, state: &mut SecurityState, prefix: GuidPrefix) {
        let Some(last_word) = state.goodbyes.remove(&prefix) else {
            return;
        };
        let mut outbox = Outbox::new();
        let at = self
            .parts
            .participant
            .lock()
            .send_unprotected_dispose(now, prefix, &mut outbox);
        let budget = BlockingBudget::for_publish(GOODBYE_WAIT);
        self.parts.send.send(&outbox, 0, &budget);
        for locator in at.iter().flat_map(|at| at.iter()) {
            self.parts
                .send
                .send_to(&[IoSlice::new(&last_word)], locator, 0, &budget);
        }
        tracing::info!(
            "participant {prefix} still has an old session; sending a goodbye, then a new handshake"
        );
    }

    /// Checks an authenticated participant: its identity, and the signed
    /// participant data, if it may join.
    fn check_authenticated(
        &self,
        state: &SecurityState,
        peer: AuthenticatedPeer,
    ) -> Result<(AdmittedPeer, Vec<u8>), String> {
        let AuthenticatedPeer {
            chain,
            permissions,
            participant_data,
        } = peer;
        let subject = chain.first().map(Certificate::subject);
        let subject = subject.ok_or("it has no certificate")?;
        let governance = &state.handshakes.local_identity().enclave.governance;
        let access = AccessControl::new(governance, &permissions, subject, self.parts.domain_id)
            .map_err(|fault| fault.to_string())?;
        let decision = access.may_join(to_unix_time(self.parts.platform.wall_clock()));
        if !decision.allowed {
            return Err(format!("'{subject}' may not join: {decision}"));
        }
        let admitted = AdmittedPeer {
            subject: subject.to_string(),
            access,
            chain,
        };
        Ok((admitted, participant_data))
    }

    /// Admits a participant: from now on it is discovered like any other, protected by
    /// the crypto transform. An earlier association with it ends first.
    fn admit(
        &self,
        now: Instant,
        prefix: GuidPrefix,
        signed: Vec<u8>,
        kx: KeyMaterial,
    ) -> Result<Arc<ParticipantData>, String> {
        let mut participant = self.parts.participant.lock();
        let signed = ParticipantData::parse_signed(&signed).ok();
        let security = participant.security();
        if security.is_some_and(|own| own.is_authenticated(prefix)) {
            tracing::info!("participant {prefix} had lost this participant");
            participant.reauthenticate(prefix);
        }
        let data = participant
            .admit(now, prefix, signed)
            .ok_or("the limit of participants is reached")?;
        self.crypto_transform
            .add_authenticated(prefix, data.vendor, kx)
            .map_err(|error| error.to_string())?;
        Ok(data)
    }
}

impl SecurityState {
    /// Whether a peer has the identity of this context: the same enclave, or a copy
    /// of it.
    fn has_own_identity(&self, peer: &AdmittedPeer) -> bool {
        let own = self
            .handshakes
            .local_identity()
            .enclave
            .identity
            .chain
            .first();
        own.is_some_and(|own| own.subject().to_string() == peer.subject)
    }

    /// Starts a handshake. Returns false if it cannot succeed now.
    fn begin_handshake(
        &mut self,
        now: Instant,
        peer: &ParticipantData,
        own_info: SecurityInfo,
    ) -> bool {
        let prefix = peer.prefix;
        if self.refused.get(&prefix).is_some_and(|until| now < *until) {
            return false;
        }
        self.refused.remove(&prefix);
        let tokens = peer.security_tokens.iter();
        let mut tokens = tokens.filter(|(id, _)| *id == pid::IDENTITY_TOKEN);
        // In the byte order of the announcement, which is not recorded.
        let is_supported = tokens.any(|(_, value)| {
            let either = [false, true].map(|big| Token::from_parameter(value, big));
            either
                .into_iter()
                .flatten()
                .any(|token| token.is_identity())
        });
        if !is_supported {
            let why = "its identity is not of the class DDS:Auth:PKI-DH:1.0";
            self.report(now, prefix, why.into());
            return false;
        }
        let tokens = peer.security_tokens.iter();
        let mut infos = tokens.filter(|(id, _)| *id == pid::PARTICIPANT_SECURITY_INFO);
        let peer_info = infos.find_map(|(_, value)| {
            SecurityInfo::from_either(value.as_ref().first_chunk().copied()?)
        });
        // As in Cyclone DDS and Fast DDS: none of its data would be accepted.
        if let Some(why) = peer_info.and_then(|peer_info| own_info.difference(peer_info)) {
            self.report(now, prefix, why);
            return false;
        }
        let with_nul = peer.vendor == VendorId::CYCLONE;
        self.handshakes
            .handle_discovered(prefix, with_nul, now)
            .is_ok()
    }

    /// Updates the locators of an endpoint whose match waits for keys.
    fn update_pending_route(&mut self, remote: &Arc<EndpointData>, route: &Route) {
        for (pair, pending) in &mut self.pending {
            if pair.remote == remote.guid {
                pending.remote.clone_from(remote);
                pending.route.clone_from(route);
            }
        }
    }

    fn back_off(&mut self, prefix: GuidPrefix, now: Instant) {
        self.handshakes.remove_peer(prefix);
        if self.refused.len() >= REMEMBERED_MAX {
            self.refused.clear();
        }
        self.refused.insert(prefix, now + REFUSAL_BACKOFF);
    }
}

/// Rejects a participant, unless discovery has none with security.
fn reject(participant: &mut Participant, prefix: GuidPrefix) {
    if let Some(security) = participant.security_mut() {
        security.reject(prefix);
    }
}
