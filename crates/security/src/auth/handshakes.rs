//! The handshakes with all peers: who is begun with, what is sent again when,
//! who is given up. At most 64 are under way; more strangers have to wait until
//! they announce themselves anew.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::time::{Duration, Instant};

use super::exchange::{Peer, Rejection};
use super::guid::adjusted_prefix;
use super::handshake::{Handshake, Outcome, SharedSecret};
use super::token::{GenericMessage, Token};
use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::enclave::Enclave;
use crate::fault::Fault;
use crate::identity::Refusal;

/// Our side of every handshake.
#[derive(Debug)]
pub struct Own {
    /// What proves who we are.
    pub enclave: Enclave,
    /// The prefix that belongs to its certificate.
    pub prefix: GuidPrefix,
    /// What the participant announces: a parameter list, big-endian, without
    /// encapsulation, with its GUID.
    pub participant_data: Vec<u8>,
}

impl Own {
    /// The prefix that a participant of this enclave has who would have had
    /// `candidate`.
    pub fn prefix_for(enclave: &Enclave, candidate: GuidPrefix) -> Result<GuidPrefix, Refusal> {
        let chain: &[Certificate] = &enclave.identity.chain;
        let certificate = chain.first().ok_or(Refusal::Empty)?;
        Ok(adjusted_prefix(certificate, candidate))
    }
}

/// The handshakes of one participant.
pub struct Handshakes {
    own: Own,
    peers: BTreeMap<GuidPrefix, Entry>,
    transmits: VecDeque<(GuidPrefix, GenericMessage)>,
    events: VecDeque<Event>,
    messages: i64,
}

struct Entry {
    handshake: Handshake,
    began: Instant,
    /// What is sent until an answer comes.
    repeated: Option<GenericMessage>,
    next: Instant,
    pause: Duration,
    /// Why the last message was not believed.
    rejection: Option<Rejection>,
}

/// What came of a handshake.
#[derive(Debug)]
pub enum Event {
    /// The peer is who its certificate says.
    Authenticated {
        /// Its prefix.
        prefix: GuidPrefix,
        /// Who it is and what it may do.
        peer: Box<Peer>,
        /// For the exchange of keys.
        secret: SharedSecret,
    },
    /// The peer did not prove it in time.
    Failed {
        /// Its prefix.
        prefix: GuidPrefix,
        /// Why the last thing that it said was not believed.
        why: Rejection,
    },
}

/// As many handshakes are under way as are allowed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{PENDING} handshakes are under way already; this one has to wait")]
pub struct Full;

impl fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handshakes({} peers)", self.peers.len())
    }
}

impl Handshakes {
    /// For a participant.
    pub fn new(own: Own) -> Self {
        Self {
            own,
            peers: BTreeMap::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            messages: 0,
        }
    }

    /// Our side.
    pub fn own(&self) -> &Own {
        &self.own
    }

    /// Reads our enclave's revocation list again, see
    /// [`Enclave::renew_revocations`].
    pub fn renew_revocations(&mut self) -> Result<(), Fault> {
        self.own.enclave.renew_revocations()
    }

    /// Begins with a peer that announced itself with an identity token; one
    /// that is known already stays as it is. `with_nul` is how the peer's
    /// vendor ends names of algorithms (Cyclone DDS does, Fast DDS 3 must not).
    pub fn handle_discovered(
        &mut self,
        peer: GuidPrefix,
        with_nul: bool,
        now: Instant,
    ) -> Result<(), Full> {
        if self.peers.contains_key(&peer) || peer == self.own.prefix {
            return Ok(());
        }
        let entries = self.peers.values();
        if entries.filter(|entry| !entry.handshake.is_done()).count() >= PENDING {
            return Err(Full);
        }
        let begun = Handshake::new(&self.own, peer)
            .and_then(|mut handshake| Ok((handshake.begin(&self.own, with_nul)?, handshake)));
        let (request, handshake) = match begun {
            Ok(begun) => begun,
            Err(why) => {
                self.events.push_back(Event::Failed { prefix: peer, why });
                return Ok(());
            }
        };
        let announcement = handshake.announcement();
        self.peers.insert(
            peer,
            Entry {
                handshake,
                began: now,
                repeated: None,
                next: now + FIRST_PAUSE,
                pause: FIRST_PAUSE,
                rejection: None,
            },
        );
        let unrelated = (Guid::UNKNOWN, 0);
        let announcement = self.message(peer, ANNOUNCEMENT, unrelated, announcement);
        push_or_drop(&mut self.transmits, peer, announcement);
        if let Some(request) = request {
            self.repeat(peer, unrelated, request, now);
        }
        Ok(())
    }

    /// Takes a message of the stateless topic. What is not for us, or from
    /// somebody who is not known, is dropped.
    pub fn handle_message(&mut self, message: GenericMessage, now: Instant, wall: UnixTime) {
        let peer = message.identity.0.prefix;
        let to = message.destination_participant;
        let for_us = to == Guid::UNKNOWN || to.prefix == self.own.prefix;
        let class = [ANNOUNCEMENT, HANDSHAKE].contains(&message.class.as_str());
        let [token] = <[Token; 1]>::try_from(message.data).unwrap_or_default();
        let Some(entry) = self.peers.get_mut(&peer).filter(|_| for_us && class) else {
            return;
        };
        let related = message.identity;
        match entry.handshake.handle(&self.own, token, wall) {
            Ok(Outcome::Nothing) => {}
            Ok(Outcome::Send(token)) => self.repeat(peer, related, token, now),
            Ok(Outcome::Once(token)) => self.send(peer, related, token),
            Ok(Outcome::Authenticated {
                peer: who,
                secret,
                last,
            }) => {
                entry.repeated = None;
                entry.rejection = None;
                if let Some(last) = last {
                    self.send(peer, related, last);
                }
                self.events.push_back(Event::Authenticated {
                    prefix: peer,
                    peer: who,
                    secret,
                });
            }
            Err(rejection) => entry.rejection = Some(rejection),
        }
    }

    /// Sends again what was not answered, and gives up whose time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (prefix, entry) in &mut self.peers {
            if entry.handshake.is_done() {
                continue;
            }
            if now >= entry.began + PATIENCE {
                let silent = Rejection::Silent(PATIENCE_SECONDS);
                over.push((*prefix, entry.rejection.take().unwrap_or(silent)));
            } else if now >= entry.next {
                entry.pause = entry.pause.times(2).min(LONGEST_PAUSE);
                entry.next = now + entry.pause;
                if let Some(message) = &entry.repeated {
                    push_or_drop(&mut self.transmits, *prefix, message.clone());
                }
            }
        }
        for (prefix, why) in over {
            self.peers.remove(&prefix);
            self.events.push_back(Event::Failed { prefix, why });
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        let under_way = self
            .peers
            .values()
            .filter(|entry| !entry.handshake.is_done());
        under_way
            .map(|entry| entry.next.min(entry.began + PATIENCE))
            .min()
    }

    /// The next message to send, and to whom.
    pub fn poll_transmit(&mut self) -> Option<(GuidPrefix, GenericMessage)> {
        self.transmits.pop_front()
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Forgets a peer that is gone.
    pub fn forget(&mut self, peer: GuidPrefix) {
        self.peers.remove(&peer);
        self.transmits.retain(|(to, _)| *to != peer);
    }

    fn repeat(&mut self, peer: GuidPrefix, related: (Guid, i64), token: Token, now: Instant) {
        let message = self.message(peer, HANDSHAKE, related, token);
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.repeated = Some(message.clone());
            entry.pause = FIRST_PAUSE;
            entry.next = now + FIRST_PAUSE;
        }
        push_or_drop(&mut self.transmits, peer, message);
    }

    fn send(&mut self, peer: GuidPrefix, related: (Guid, i64), token: Token) {
        let message = self.message(peer, HANDSHAKE, related, token);
        push_or_drop(&mut self.transmits, peer, message);
    }

    fn message(
        &mut self,
        peer: GuidPrefix,
        class: &str,
        related: (Guid, i64),
        token: Token,
    ) -> GenericMessage {
        self.messages = self.messages.saturating_add(1);
        GenericMessage {
            identity: (self.own.prefix.with(STATELESS_WRITER), self.messages),
            related,
            destination_participant: peer.with(EntityId::PARTICIPANT),
            destination_endpoint: Guid::UNKNOWN,
            source_endpoint: Guid::UNKNOWN,
            class: class.into(),
            data: vec![token],
        }
    }
}

/// What finds the queue full is lost as on the network, and sent again.
fn push_or_drop(
    transmits: &mut VecDeque<(GuidPrefix, GenericMessage)>,
    peer: GuidPrefix,
    message: GenericMessage,
) {
    if transmits.len() < TRANSMITS {
        transmits.push_back((peer, message));
    }
}

/// Messages that wait to be sent: four for each handshake under way.
const TRANSMITS: usize = 4 * PENDING;
/// Handshakes under way at once.
const PENDING: usize = 64;
/// As Fast DDS; long enough for a reply over Wi-Fi.
const FIRST_PAUSE: Duration = Duration::from_millis(125);
/// Pauses double up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const PATIENCE_SECONDS: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(10);
const ANNOUNCEMENT: &str = "dds.sec.auth_request";
const HANDSHAKE: &str = "dds.sec.auth";
/// The writer of the stateless topic (DDS Security 1.1 §7.4.5).
const STATELESS_WRITER: EntityId = EntityId::new([0, 2, 1], 0xc3);
