//! The handshakes with all peers: who is begun with, what is sent again when,
//! who is given up. At most 64 are under way; more strangers have to wait until
//! they announce themselves anew.
//!
//! A peer that is known may have lost us. It shows that by beginning anew, and so
//! could anybody in its name: that handshake is made beside the one that is done,
//! which holds until the peer has proved that it is at the new one.

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
use crate::enclave::{Enclave, Renewal};
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
    attempt: Attempt,
    /// Of a peer that is known: those that may take its place.
    renewals: Vec<Attempt>,
    /// How its vendor ends names.
    with_nul: bool,
}

/// One handshake with a peer.
struct Attempt {
    handshake: Handshake,
    began: Instant,
    /// What is sent until an answer comes.
    repeated: Option<GenericMessage>,
    next: Instant,
    pause: Duration,
    /// Why the last message was not believed.
    rejection: Option<Rejection>,
}

impl Attempt {
    fn new(handshake: Handshake, now: Instant) -> Self {
        Self {
            handshake,
            began: now,
            repeated: None,
            next: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
            rejection: None,
        }
    }

    fn repeat(&mut self, message: GenericMessage, now: Instant) {
        self.repeated = Some(message);
        self.pause = FIRST_PAUSE;
        self.next = now + FIRST_PAUSE;
    }

    fn is_over(&self, now: Instant) -> bool {
        !self.handshake.is_done() && now >= self.began + PATIENCE
    }

    /// What is to be sent again now.
    fn due(&mut self, now: Instant) -> Option<GenericMessage> {
        if self.handshake.is_done() || now < self.next {
            return None;
        }
        self.pause = self.pause.times(2).min(LONGEST_PAUSE);
        self.next = now + self.pause;
        self.repeated.clone()
    }

    fn deadline(&self) -> Option<Instant> {
        let soonest = self.next.min(self.began + PATIENCE);
        (!self.handshake.is_done()).then_some(soonest)
    }
}

impl Entry {
    /// All of them, the first first.
    fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        std::iter::once(&self.attempt).chain(&self.renewals)
    }

    fn attempts_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        std::iter::once(&mut self.attempt).chain(&mut self.renewals)
    }
}

/// What came of a handshake.
#[derive(Debug)]
pub enum Event {
    /// The peer is who its certificate says. Said again of one that is known: it
    /// had lost us, and all that was agreed on before is over.
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

    /// Reads our enclave's files again, see [`Enclave::renew`]. Whoever is to know
    /// us by them is to be [forgotten](Self::forget).
    ///
    /// # Errors
    /// What is wrong with them; all stays as it was.
    pub fn renew(&mut self, now: UnixTime) -> Result<Renewal, Vec<Fault>> {
        self.own.enclave.renew(now)
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
        let under_way = |entry: &&Entry| !entry.attempt.handshake.is_done();
        if self.peers.values().filter(under_way).count() >= PENDING {
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
        let entry = Entry {
            attempt: Attempt::new(handshake, now),
            renewals: Vec::new(),
            with_nul,
        };
        self.peers.insert(peer, entry);
        let unrelated = (Guid::UNKNOWN, 0);
        let announcement = self.message(peer, ANNOUNCEMENT, unrelated, announcement);
        push_or_drop(&mut self.transmits, peer, announcement.clone());
        match request {
            Some(request) => self.repeat((peer, 0), unrelated, request, now),
            // One that knows us still hears by this that we do not know it.
            None => {
                if let Some(entry) = self.peers.get_mut(&peer) {
                    entry.attempt.repeat(announcement, now);
                }
            }
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
        let mut attempts = entry.attempts_mut().enumerate();
        let heeded = attempts.find_map(|(place, attempt)| {
            match attempt.handshake.handle(&self.own, &token, wall) {
                Ok(Outcome::Nothing) => None,
                Ok(outcome) => Some((place, outcome)),
                Err(rejection) => {
                    attempt.rejection = Some(rejection);
                    None
                }
            }
        });
        drop(attempts);
        match heeded {
            Some((place, outcome)) => self.carry_out((peer, place), related, outcome, now),
            None => self.begin_anew(peer, &token, related, (now, wall)),
        }
    }

    /// Does what a message to one attempt asks for.
    fn carry_out(
        &mut self,
        (peer, place): (GuidPrefix, usize),
        related: (Guid, i64),
        outcome: Outcome,
        now: Instant,
    ) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Send(token) => self.repeat((peer, place), related, token, now),
            Outcome::Once(token) => self.send(peer, related, token),
            Outcome::Authenticated {
                peer: who,
                secret,
                last,
            } => {
                if let Some(entry) = self.peers.get_mut(&peer) {
                    let renewals = std::mem::take(&mut entry.renewals);
                    if let Some(renewal) = renewals.into_iter().nth(place.wrapping_sub(1)) {
                        entry.attempt = renewal;
                    }
                    entry.attempt.repeated = None;
                    entry.attempt.rejection = None;
                }
                if let Some(last) = last {
                    self.send(peer, related, last);
                }
                self.events.push_back(Event::Authenticated {
                    prefix: peer,
                    peer: who,
                    secret,
                });
            }
        }
    }

    /// Makes a handshake beside one that is done, if the peer seems to begin anew.
    fn begin_anew(
        &mut self,
        peer: GuidPrefix,
        token: &Token,
        related: (Guid, i64),
        (now, wall): (Instant, UnixTime),
    ) {
        let renewals = self.peers.values().flat_map(|entry| &entry.renewals);
        let has_room = renewals.count() < PENDING;
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let Some(said) = entry.attempt.handshake.begins_anew(token) else {
            return;
        };
        if let Some(asked) = entry.renewals.first_mut()
            && asked.handshake.is_initiator()
        {
            asked.handshake.expect(said);
            return;
        }
        if entry.renewals.len() >= RENEWALS_OF_ONE {
            entry.renewals.remove(0);
        } else if !has_room {
            return;
        }
        let made = Handshake::renewing(&self.own, peer, said).and_then(|mut handshake| {
            let request = handshake.begin(&self.own, entry.with_nul)?;
            let answer = match request {
                Some(request) => Outcome::Send(request),
                None => handshake.handle(&self.own, token, wall)?,
            };
            Ok((handshake, answer))
        });
        if let Ok((handshake, answer)) = made {
            entry.renewals.push(Attempt::new(handshake, now));
            let place = entry.renewals.len();
            self.carry_out((peer, place), related, answer, now);
        }
    }

    /// Sends again what was not answered, and gives up whose time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (prefix, entry) in &mut self.peers {
            if entry.attempt.is_over(now) {
                let silent = Rejection::Silent(PATIENCE_SECONDS);
                over.push((*prefix, entry.attempt.rejection.take().unwrap_or(silent)));
                continue;
            }
            // Whoever asked for them is known, or has been silent since.
            entry.renewals.retain(|renewal| !renewal.is_over(now));
            for message in entry.attempts_mut().filter_map(|attempt| attempt.due(now)) {
                push_or_drop(&mut self.transmits, *prefix, message);
            }
        }
        for (prefix, why) in over {
            self.peers.remove(&prefix);
            self.events.push_back(Event::Failed { prefix, why });
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        let attempts = self.peers.values().flat_map(Entry::attempts);
        attempts.filter_map(Attempt::deadline).min()
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

    fn repeat(
        &mut self,
        (peer, place): (GuidPrefix, usize),
        related: (Guid, i64),
        token: Token,
        now: Instant,
    ) {
        let message = self.message(peer, HANDSHAKE, related, token);
        let entry = self.peers.get_mut(&peer);
        if let Some(attempt) = entry.and_then(|entry| entry.attempts_mut().nth(place)) {
            attempt.repeat(message.clone(), now);
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
/// Handshakes under way at once; and beside them, with peers that are known.
const PENDING: usize = 64;
/// Those with one peer that is known. Its own is not lost if somebody asks in its
/// name meanwhile.
const RENEWALS_OF_ONE: usize = 4;
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
