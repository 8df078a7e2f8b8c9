//! What is said to strangers, and by them: the handshakes.

use bytes::Bytes;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::pid;
use pteros_security::auth::{Event, GenericMessage, Peer, Token};
use pteros_security::certificate::Certificate;
use pteros_security::permissions::access::Access;

use super::opening::unix;
use super::{Authenticated, REMEMBERED_MAX, State};
use crate::core::Core;
use crate::deadline::Machine;

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
                if !state.begin(now, data) {
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
            ParticipantEvent::ParticipantLost { prefix, .. } => {
                state.peers.remove(prefix);
                state.handshakes.forget(*prefix);
            }
            _ => return,
        }
        self.serve_handshakes(now, &mut state);
    }

    /// Lets time pass for the handshakes.
    pub(crate) fn turn_handshakes(&self, now: Instant) {
        if let Some(security) = &self.security {
            let mut state = security.state.lock();
            state.handshakes.handle_timeout(now);
            self.serve_handshakes(now, &mut state);
        }
        self.serve_participant(now);
    }

    fn serve_handshakes(&self, now: Instant, state: &mut State) {
        while let Some(event) = state.handshakes.poll_event() {
            match event {
                Event::Authenticated { prefix, peer, .. } => {
                    match self.judge(state, &peer) {
                        Ok(subject) => {
                            tracing::info!("participant {prefix} is {subject}");
                            state.told.remove(&prefix);
                            state.peers.insert(prefix, Authenticated { subject });
                        }
                        Err(why) => {
                            state.tell(prefix, why);
                            state.refuse(prefix, now);
                            self.participant.lock().turn_away(prefix);
                        }
                    };
                }
                Event::Failed { prefix, why } => {
                    state.tell(prefix, why.to_string());
                    self.participant.lock().turn_away(prefix);
                }
            }
        }
        let mut participant = self.participant.lock();
        while let Some((to, message)) = state.handshakes.poll_transmit() {
            participant.send_stateless(to, Bytes::from(message.to_payload()));
        }
        drop(participant);
        self.schedule(Machine::Handshakes, state.handshakes.deadline());
    }

    /// The subject of one who has proved who it is, if it may be here.
    fn judge(&self, state: &State, peer: &Peer) -> Result<String, String> {
        let subject = peer.chain.first().map(Certificate::subject);
        let subject = subject.ok_or("it has no certificate")?;
        let governance = &state.handshakes.own().enclave.governance;
        let access = Access::new(
            governance,
            &peer.permissions,
            subject,
            self.options.domain_id,
        )
        .map_err(|fault| fault.to_string())?;
        let verdict = access.may_join(unix(self.env.wall()));
        match verdict.allowed {
            true => Ok(subject.to_string()),
            false => Err(format!("'{subject}' may not join: {verdict}")),
        }
    }

    /// The participants that have proved who they are, with the subjects of their
    /// certificates; none where this context is not secured.
    pub fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        let security = self.security.as_ref();
        security.map_or_else(Vec::new, |security| security.authenticated())
    }
}

impl State {
    /// Begins a handshake; false if it makes no sense now.
    fn begin(&mut self, now: Instant, peer: &ParticipantData) -> bool {
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
        let with_nul = peer.vendor == VendorId::CYCLONE;
        self.handshakes
            .handle_discovered(prefix, with_nul, now)
            .is_ok()
    }

    fn refuse(&mut self, prefix: GuidPrefix, now: Instant) {
        self.handshakes.forget(prefix);
        if self.refused.len() >= REMEMBERED_MAX {
            self.refused.clear();
        }
        self.refused.insert(prefix, now + REFUSAL_PAUSE);
    }
}
