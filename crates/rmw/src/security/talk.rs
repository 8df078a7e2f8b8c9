//! What is said to strangers, and by them: the handshakes.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{LostReason, ParticipantEvent};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::pid;
use pteros_security::attributes::SecurityInfo;
use pteros_security::auth::{Event, GenericMessage, Peer, Token};
use pteros_security::certificate::Certificate;
use pteros_security::crypto::KeyMaterial;
use pteros_security::permissions::access::Access;
use pteros_security::shield::Sealed;

use super::opening::unix;
use super::{Authenticated, REMEMBERED_MAX, Security, State};
use crate::core::{Core, GOODBYE_WAIT};
use crate::deadline::Machine;
use crate::env::Received;
use crate::room::Patience;

/// How long one whose permissions do not let it be here is not begun with again.
const REFUSAL_PAUSE: Duration = Duration::from_secs(30);

impl Core {
    /// Heeds what discovery tells of strangers. What comes of it is sent with
    /// what the participant has to send next.
    pub(crate) fn heed_strangers(&self, now: Instant, event: &ParticipantEvent) {
        let Some(security) = &self.security else {
            return;
        };
        let mut state = security.state.lock();
        match event {
            ParticipantEvent::Stranger(data) => {
                let ours = SecurityInfo::of_participant(security.access().domain_rule());
                if !state.begin(now, data, ours) {
                    self.participant.lock().turn_away(data.prefix);
                }
            }
            ParticipantEvent::Unauthenticated(data) => {
                let why = "it announces no identity, and the governance has \
                           allow_unauthenticated_participants false";
                state.tell(data.prefix, why.into());
            }
            ParticipantEvent::StatelessMessage { payload, .. } => {
                // Who sent it says the message; it is proved or worth nothing.
                if let Some(message) = GenericMessage::from_payload(payload) {
                    let wall = unix(self.env.wall());
                    state.handshakes.handle_message(message, now, wall);
                }
            }
            ParticipantEvent::ParticipantDiscovered(data) => {
                if !state.peers.contains_key(&data.prefix) {
                    // The governance allows it, or it would not be met.
                    let _ = security.shield.allow_plain(data.prefix);
                }
            }
            ParticipantEvent::KeysMessage { from, payload } => {
                drop(state);
                if self.take_keys(security, *from, payload) {
                    self.open_pending(now, security);
                }
                return;
            }
            ParticipantEvent::EndpointLost(guid) => security.shield.forget_endpoint(*guid),
            ParticipantEvent::EndpointChanged { remote, route } => {
                state.note_change(remote, route);
            }
            // All is as it should be already, and with the new keys.
            ParticipantEvent::ParticipantLost {
                reason: LostReason::Renewed,
                ..
            } => {}
            ParticipantEvent::ParticipantLost { prefix, reason } => {
                if *reason == LostReason::LeaseExpired {
                    self.keep_last_word(security, &mut state, *prefix);
                }
                security.shield.forget(*prefix);
                state.peers.remove(prefix);
                state.handshakes.forget(*prefix);
            }
            _ => return,
        }
        self.serve_handshakes(now, security, &mut state);
    }

    /// A datagram that the shield has not seen yet: who answers us before it
    /// knows that it has to prove who it is shows all the same that it hears us.
    pub(crate) fn note_addressed(&self, now: Instant, datagram: &[u8], received: &Received) {
        let security = self.security.as_ref();
        if !security.is_some_and(|own| own.has_candidates.load(Ordering::Relaxed)) {
            return;
        }
        let Ok(mut message) = MessageReader::new(datagram, self.prefix) else {
            return;
        };
        let prefix = message.header().prefix;
        if message.any(|(source, _)| source.destination == self.prefix && source.prefix == prefix) {
            let from = received.from;
            self.participant.lock().note_addressed(now, from, prefix);
            self.serve_participant(now);
        }
    }

    /// Lets time pass for the handshakes.
    pub(crate) fn turn_handshakes(&self, now: Instant) {
        if let Some(security) = &self.security {
            let mut state = security.state.lock();
            state.handshakes.handle_timeout(now);
            let others = self.recheck(now, security, &mut state);
            self.serve_handshakes(now, security, &mut state);
            drop(state);
            if others {
                self.rejudge_own(now, security);
            }
        }
        self.serve_participant(now);
    }

    fn serve_handshakes(&self, now: Instant, security: &Security, state: &mut State) {
        while let Some(event) = state.handshakes.poll_event() {
            match event {
                Event::Authenticated {
                    prefix,
                    peer,
                    secret,
                } => {
                    let admitted = self.judge(state, *peer).and_then(|(known, signed)| {
                        let kx = secret.key_exchange_material();
                        let data = self.admit(now, security, (prefix, signed), kx)?;
                        Ok((known, data))
                    });
                    match admitted {
                        Ok((known, data)) => {
                            tracing::info!("participant {prefix} is {}", known.subject);
                            state.told.remove(&prefix);
                            state.last_words.remove(&prefix);
                            if state.is_ours(&known) {
                                security.shield.share_memory(prefix);
                            }
                            state.peers.insert(prefix, known);
                            self.give_first_keys(now, security, &data);
                        }
                        Err(why) => {
                            state.tell(prefix, why);
                            state.refuse(prefix, now);
                            security.shield.forget(prefix);
                            let mut participant = self.participant.lock();
                            match state.peers.remove(&prefix) {
                                Some(_) => participant.expel(prefix),
                                None => participant.turn_away(prefix),
                            }
                        }
                    };
                }
                Event::Failed { prefix, why } => {
                    state.tell(prefix, why.to_string());
                    self.say_last_word(now, state, prefix);
                    self.participant.lock().turn_away(prefix);
                }
            }
        }
        let mut participant = self.participant.lock();
        while let Some((to, message)) = state.handshakes.poll_transmit() {
            participant.send_stateless(to, Bytes::from(message.to_payload()));
        }
        drop(participant);
        let check = state.next_check;
        let next = state.handshakes.deadline();
        let next = next.map_or(check, |deadline| deadline.min(check));
        self.schedule(Machine::Handshakes, Some(next));
    }

    /// One who was in is lost; perhaps it has not lost us. While its keys are known, a
    /// goodbye is made that it would believe then.
    pub(super) fn keep_last_word(
        &self,
        security: &Security,
        state: &mut State,
        prefix: GuidPrefix,
    ) {
        if !state.peers.contains_key(&prefix) {
            return;
        }
        let mut outbox = Outbox::new();
        self.participant.lock().write_last_word(prefix, &mut outbox);
        let mut sealed = Sealed::default();
        for datagram in outbox.iter() {
            if security.shield.seal(&datagram.parts, &mut sealed).is_err() {
                return;
            }
        }
        if state.last_words.len() >= REMEMBERED_MAX {
            state.last_words.clear();
        }
        let bytes = sealed.datagrams().next();
        let bytes = bytes.map(|bytes| (prefix, bytes.to_vec()));
        state.last_words.extend(bytes);
    }

    /// One who was in once has come again and answers nothing, as those do who have
    /// not lost us (Cyclone DDS and Fast DDS): it hears a goodbye, and us anew.
    fn say_last_word(&self, now: Instant, state: &mut State, prefix: GuidPrefix) {
        let Some(last_word) = state.last_words.remove(&prefix) else {
            return;
        };
        let mut outbox = Outbox::new();
        let at = self
            .participant
            .lock()
            .part_from_stranger(now, prefix, &mut outbox);
        let patience = Patience::of(GOODBYE_WAIT);
        self.send(&outbox, 0, &patience);
        for locator in at.iter().flat_map(|at| at.iter()) {
            self.send_to(&[IoSlice::new(&last_word)], locator, 0, &patience);
        }
        tracing::info!(
            "participant {prefix} seems to know us still; it hears a goodbye, to be met anew"
        );
    }

    /// One who has proved who it is, and what it signed of itself, if it may be
    /// here.
    fn judge(&self, state: &State, peer: Peer) -> Result<(Authenticated, Vec<u8>), String> {
        let Peer {
            chain,
            permissions,
            participant_data,
        } = peer;
        let subject = chain.first().map(Certificate::subject);
        let subject = subject.ok_or("it has no certificate")?;
        let governance = &state.handshakes.own().enclave.governance;
        let access = Access::new(governance, &permissions, subject, self.options.domain_id)
            .map_err(|fault| fault.to_string())?;
        let verdict = access.may_join(unix(self.env.wall()));
        if !verdict.allowed {
            return Err(format!("'{subject}' may not join: {verdict}"));
        }
        let known = Authenticated {
            subject: subject.to_string(),
            access,
            chain,
        };
        Ok((known, participant_data))
    }

    /// Lets one in: from here on it is discovered as any other, behind the shield.
    /// If it is in, all that there was with it ends first.
    fn admit(
        &self,
        now: Instant,
        security: &Security,
        (prefix, signed): (GuidPrefix, Vec<u8>),
        kx: KeyMaterial,
    ) -> Result<Arc<ParticipantData>, String> {
        let mut participant = self.participant.lock();
        let signed = ParticipantData::parse_signed(&signed).ok();
        if participant.is_authenticated(prefix) {
            tracing::info!("participant {prefix} had lost us");
            participant.estrange(prefix);
        }
        let data = participant
            .admit(now, prefix, signed)
            .ok_or("there is no room for another participant")?;
        security
            .shield
            .authenticated(prefix, data.vendor, kx)
            .map_err(|error| error.to_string())?;
        Ok(data)
    }

    /// The participants that have proved who they are, with the subjects of their
    /// certificates; none where this context is not secured.
    pub fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        let security = self.security.as_ref();
        security.map_or_else(Vec::new, |security| security.authenticated())
    }
}

impl State {
    /// Whether somebody has the identity that we have: it runs with our enclave,
    /// or a copy of it.
    fn is_ours(&self, peer: &Authenticated) -> bool {
        let own = self.handshakes.own().enclave.identity.chain.first();
        own.is_some_and(|own| own.subject().to_string() == peer.subject)
    }

    /// Begins a handshake; false if it makes no sense now.
    fn begin(&mut self, now: Instant, peer: &ParticipantData, ours: SecurityInfo) -> bool {
        let prefix = peer.prefix;
        if self.refused.get(&prefix).is_some_and(|until| now < *until) {
            return false;
        }
        self.refused.remove(&prefix);
        let tokens = peer.security_tokens.iter();
        let mut tokens = tokens.filter(|(id, _)| *id == pid::IDENTITY_TOKEN);
        // In the byte order of the announcement, which nobody remembers.
        let speaks = tokens.any(|(_, value)| {
            let either = [false, true].map(|big| Token::from_parameter(value, big));
            either
                .into_iter()
                .flatten()
                .any(|token| token.is_identity())
        });
        if !speaks {
            let why = "its identity is not of the kind DDS:Auth:PKI-DH:1.0";
            self.tell(prefix, why.into());
            return false;
        }
        let tokens = peer.security_tokens.iter();
        let mut infos = tokens.filter(|(id, _)| *id == pid::PARTICIPANT_SECURITY_INFO);
        let theirs = infos.find_map(|(_, value)| {
            SecurityInfo::from_either(value.as_ref().first_chunk().copied()?)
        });
        // As Cyclone DDS and Fast DDS have it; nothing that it says would be believed.
        if let Some(why) = theirs.and_then(|theirs| ours.difference(theirs)) {
            self.tell(prefix, why);
            return false;
        }
        let with_nul = peer.vendor == VendorId::CYCLONE;
        self.handshakes
            .handle_discovered(prefix, with_nul, now)
            .is_ok()
    }

    /// A match that waits for keys is with an endpoint that is elsewhere now.
    fn note_change(&mut self, remote: &Arc<EndpointData>, route: &Route) {
        for ((_, of), pending) in &mut self.pending {
            if *of == remote.guid {
                pending.remote.clone_from(remote);
                pending.route.clone_from(route);
            }
        }
    }

    fn refuse(&mut self, prefix: GuidPrefix, now: Instant) {
        self.handshakes.forget(prefix);
        if self.refused.len() >= REMEMBERED_MAX {
            self.refused.clear();
        }
        self.refused.insert(prefix, now + REFUSAL_PAUSE);
    }
}
