//! Authentication handshakes with all peers: starts, repeats and times them out. At
//! most 64 are in progress. Further unauthenticated participants wait until their
//! next announcement.
//!
//! A known peer may have lost its state of us. It then restarts the handshake,
//! which an attacker could do in its name, too. The renewal runs beside the
//! completed handshake, which stays valid until the peer has authenticated in the
//! new one.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::time::{Duration, Instant};

use super::guid::adjusted_prefix;
use super::handshake::{Handshake, HandshakeAction, SharedSecret};
use super::handshake_tokens::{AuthenticatedPeer, HandshakeRejection};
use super::token::{GenericMessage, MessageIdentity, Token};
use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::enclave::{Enclave, ReloadOutcome};
use crate::identity::CertificateRejection;

/// The local identity for every handshake.
#[derive(Debug)]
pub struct LocalIdentity {
    /// Certificate, private key and permissions.
    pub enclave: Enclave,
    /// The GUID prefix that belongs to the certificate.
    pub prefix: GuidPrefix,
    /// The data that the participant announces: a parameter list, big-endian,
    /// without encapsulation, with its GUID.
    pub participant_data: Vec<u8>,
}

impl LocalIdentity {
    /// The adjusted prefix of a participant of this enclave, from the prefix
    /// `candidate`.
    pub fn prefix_for(
        enclave: &Enclave,
        candidate: GuidPrefix,
    ) -> Result<GuidPrefix, CertificateRejection> {
        let chain: &[Certificate] = &enclave.identity.chain;
        let certificate = chain.first().ok_or(CertificateRejection::Empty)?;
        Ok(adjusted_prefix(certificate, candidate))
    }
}

/// The handshakes of one participant.
pub struct Handshakes {
    own: LocalIdentity,
    peers: BTreeMap<GuidPrefix, Entry>,
    transmits: VecDeque<(GuidPrefix, GenericMessage)>,
    events: VecDeque<HandshakeEvent>,
    messages: i64,
}

struct Entry {
    attempt: Attempt,
    /// Renewals with a known peer, which may replace its handshake.
    renewals: Vec<Attempt>,
    /// Whether its vendor ends names with a zero.
    with_nul: bool,
}

/// One handshake with a peer.
struct Attempt {
    handshake: Handshake,
    began: Instant,
    /// The message repeated until a reply arrives.
    repeated: Option<GenericMessage>,
    /// How often it was repeated.
    repeats: u32,
    next: Instant,
    pause: Duration,
    /// Why the last message was rejected.
    rejection: Option<HandshakeRejection>,
}

impl Attempt {
    fn new(handshake: Handshake, now: Instant) -> Self {
        Self {
            handshake,
            began: now,
            repeated: None,
            repeats: 0,
            next: now + RETRY_PAUSE_MIN,
            pause: RETRY_PAUSE_MIN,
            rejection: None,
        }
    }

    fn repeat(&mut self, message: GenericMessage, now: Instant) {
        self.repeated = Some(message);
        self.repeats = 0;
        self.pause = RETRY_PAUSE_MIN;
        self.next = now + RETRY_PAUSE_MIN;
    }

    fn has_timed_out(&self, now: Instant) -> bool {
        !self.handshake.is_done() && now >= self.began + TIMEOUT
    }

    /// The message to repeat now, if one is due.
    fn take_due(&mut self, now: Instant) -> Option<GenericMessage> {
        if self.handshake.is_done() || now < self.next {
            return None;
        }
        self.repeats = self.repeats.saturating_add(1);
        if self.repeats >= EARLY_RETRIES {
            self.pause = self.pause.times(2).min(RETRY_PAUSE_MAX);
        }
        self.next = now + self.pause;
        self.repeated.clone()
    }

    fn deadline(&self) -> Option<Instant> {
        let soonest = self.next.min(self.began + TIMEOUT);
        (!self.handshake.is_done()).then_some(soonest)
    }
}

impl Entry {
    /// All attempts, the first one first.
    fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        std::iter::once(&self.attempt).chain(&self.renewals)
    }

    fn attempts_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        std::iter::once(&mut self.attempt).chain(&mut self.renewals)
    }
}

/// Outcome of a handshake.
#[derive(Debug)]
pub enum HandshakeEvent {
    /// The peer has authenticated. For a known peer this means that it had lost its
    /// state: everything agreed on before is void.
    Authenticated {
        /// GUID prefix of the remote participant.
        prefix: GuidPrefix,
        /// Its identity and permissions.
        peer: Box<AuthenticatedPeer>,
        /// For the key exchange.
        secret: SharedSecret,
    },
    /// The peer did not authenticate in time.
    Failed {
        /// GUID prefix of the remote participant.
        prefix: GuidPrefix,
        /// Why its last message was rejected.
        rejection: HandshakeRejection,
    },
}

/// The limit of concurrent handshakes is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{HANDSHAKES_MAX} handshakes are under way already; this one has to wait")]
pub struct TooManyHandshakes;

impl fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handshakes({} peers)", self.peers.len())
    }
}

impl Handshakes {
    /// For a participant.
    pub fn new(own: LocalIdentity) -> Self {
        Self {
            own,
            peers: BTreeMap::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            messages: 0,
        }
    }

    /// The identity that this participant proves to its peers.
    pub fn local_identity(&self) -> &LocalIdentity {
        &self.own
    }

    /// Reads our enclave's revocation list again, see
    /// [`Enclave::reload_revocations`].
    pub fn reload_revocations(&mut self) -> Result<(), Diagnostic> {
        self.own.enclave.reload_revocations()
    }

    /// Reloads our enclave's files, see [`Enclave::reload`]. Peers that must
    /// authenticate the new certificate are to be [removed](Self::remove_peer).
    ///
    /// # Errors
    /// The problems in the files. Nothing is changed then.
    pub fn reload(&mut self, now: UnixTime) -> Result<ReloadOutcome, Vec<Diagnostic>> {
        self.own.enclave.reload(now)
    }

    /// Starts a handshake with a peer that announced an identity token. A known
    /// peer is left unchanged. `with_nul`: whether the peer's vendor ends names of
    /// algorithms with a zero (Cyclone DDS does, Fast DDS 3 must not).
    pub fn handle_discovered(
        &mut self,
        peer: GuidPrefix,
        with_nul: bool,
        now: Instant,
    ) -> Result<(), TooManyHandshakes> {
        if self.peers.contains_key(&peer) || peer == self.own.prefix {
            return Ok(());
        }
        let under_way = |entry: &&Entry| !entry.attempt.handshake.is_done();
        if self.peers.values().filter(under_way).count() >= HANDSHAKES_MAX {
            return Err(TooManyHandshakes);
        }
        let begun = Handshake::new(&self.own, peer)
            .and_then(|mut handshake| Ok((handshake.begin(&self.own, with_nul)?, handshake)));
        let (request, handshake) = match begun {
            Ok(begun) => begun,
            Err(why) => {
                self.events.push_back(HandshakeEvent::Failed {
                    prefix: peer,
                    rejection: why,
                });
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
        let unrelated = MessageIdentity::UNKNOWN;
        let announcement = self.message(peer, ANNOUNCEMENT, unrelated, announcement);
        push_or_drop(&mut self.transmits, peer, announcement.clone());
        match request {
            Some(request) => self.repeat(peer, 0, unrelated, request, now),
            // This shows a peer with old state that ours is lost.
            None => {
                if let Some(entry) = self.peers.get_mut(&peer) {
                    entry.attempt.repeat(announcement, now);
                }
            }
        }
        Ok(())
    }

    /// Handles a message of the stateless topic. Messages for others, or from
    /// unknown peers, are dropped.
    pub fn handle_message(&mut self, message: GenericMessage, now: Instant, wall: UnixTime) {
        let peer = message.identity.source_guid.prefix;
        let to = message.destination_participant;
        let for_us = to == Guid::UNKNOWN || to.prefix == self.own.prefix;
        let class = [ANNOUNCEMENT, HANDSHAKE].contains(&message.class.as_str());
        let [token] = <[Token; 1]>::try_from(message.data).unwrap_or_default();
        let Some(entry) = self.peers.get_mut(&peer).filter(|_| for_us && class) else {
            return;
        };
        let related = message.identity;
        let mut attempts = entry.attempts_mut().enumerate();
        let handled = attempts.find_map(|(attempt_index, attempt)| {
            match attempt.handshake.handle(&self.own, &token, wall) {
                Ok(HandshakeAction::Nothing) => None,
                Ok(action) => Some((attempt_index, action)),
                Err(rejection) => {
                    attempt.rejection = Some(rejection);
                    None
                }
            }
        });
        drop(attempts);
        match handled {
            Some((attempt_index, action)) => self.apply(peer, attempt_index, related, action, now),
            None => self.begin_renewal(peer, &token, related, now, wall),
        }
    }

    /// Performs the action that a message to one attempt requires.
    fn apply(
        &mut self,
        peer: GuidPrefix,
        attempt_index: usize,
        related: MessageIdentity,
        action: HandshakeAction,
        now: Instant,
    ) {
        match action {
            HandshakeAction::Nothing => {}
            HandshakeAction::Send(token) => self.repeat(peer, attempt_index, related, token, now),
            HandshakeAction::SendOnce(token) => self.send(peer, related, token),
            HandshakeAction::Authenticated {
                peer: who,
                secret,
                last,
            } => {
                if let Some(entry) = self.peers.get_mut(&peer) {
                    let renewals = std::mem::take(&mut entry.renewals);
                    if let Some(renewal) = renewals.into_iter().nth(attempt_index.wrapping_sub(1)) {
                        entry.attempt = renewal;
                    }
                    entry.attempt.repeated = None;
                    entry.attempt.rejection = None;
                }
                if let Some(last) = last {
                    self.send(peer, related, last);
                }
                self.events.push_back(HandshakeEvent::Authenticated {
                    prefix: peer,
                    peer: who,
                    secret,
                });
            }
        }
    }

    /// Starts a renewal beside a completed handshake, if the peer seems to have
    /// restarted.
    fn begin_renewal(
        &mut self,
        peer: GuidPrefix,
        token: &Token,
        related: MessageIdentity,
        now: Instant,
        wall: UnixTime,
    ) {
        let renewals = self.peers.values().flat_map(|entry| &entry.renewals);
        let has_room = renewals.count() < HANDSHAKES_MAX;
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let Some(peer_challenge) = entry.attempt.handshake.restart_challenge(token) else {
            return;
        };
        if let Some(asked) = entry.renewals.first_mut()
            && asked.handshake.is_initiator()
        {
            asked.handshake.expect_challenge(peer_challenge);
            return;
        }
        if entry.renewals.len() >= RENEWALS_PER_PEER_MAX {
            entry.renewals.remove(0);
        } else if !has_room {
            return;
        }
        let made =
            Handshake::for_renewal(&self.own, peer, peer_challenge).and_then(|mut handshake| {
                let request = handshake.begin(&self.own, entry.with_nul)?;
                let answer = match request {
                    Some(request) => HandshakeAction::Send(request),
                    None => handshake.handle(&self.own, token, wall)?,
                };
                Ok((handshake, answer))
            });
        if let Ok((handshake, answer)) = made {
            entry.renewals.push(Attempt::new(handshake, now));
            let attempt_index = entry.renewals.len();
            self.apply(peer, attempt_index, related, answer, now);
        }
    }

    /// Repeats unanswered messages, and ends handshakes that have timed out.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (prefix, entry) in &mut self.peers {
            if entry.attempt.has_timed_out(now) {
                let silent = HandshakeRejection::TimedOut(TIMEOUT_SECONDS);
                over.push((*prefix, entry.attempt.rejection.take().unwrap_or(silent)));
                continue;
            }
            // The peer is known and keeps its handshake, or has been silent since.
            entry.renewals.retain(|renewal| !renewal.has_timed_out(now));
            for message in entry
                .attempts_mut()
                .filter_map(|attempt| attempt.take_due(now))
            {
                push_or_drop(&mut self.transmits, *prefix, message);
            }
        }
        for (prefix, why) in over {
            self.peers.remove(&prefix);
            self.events.push_back(HandshakeEvent::Failed {
                prefix,
                rejection: why,
            });
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        let attempts = self.peers.values().flat_map(Entry::attempts);
        attempts.filter_map(Attempt::deadline).min()
    }

    /// The next message to send, and its destination.
    pub fn poll_transmit(&mut self) -> Option<(GuidPrefix, GenericMessage)> {
        self.transmits.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<HandshakeEvent> {
        self.events.pop_front()
    }

    /// Removes a peer that is gone.
    pub fn remove_peer(&mut self, peer: GuidPrefix) {
        self.peers.remove(&peer);
        self.transmits.retain(|(to, _)| *to != peer);
    }

    fn repeat(
        &mut self,
        peer: GuidPrefix,
        attempt_index: usize,
        related: MessageIdentity,
        token: Token,
        now: Instant,
    ) {
        let message = self.message(peer, HANDSHAKE, related, token);
        let entry = self.peers.get_mut(&peer);
        if let Some(attempt) = entry.and_then(|entry| entry.attempts_mut().nth(attempt_index)) {
            attempt.repeat(message.clone(), now);
        }
        push_or_drop(&mut self.transmits, peer, message);
    }

    fn send(&mut self, peer: GuidPrefix, related: MessageIdentity, token: Token) {
        let message = self.message(peer, HANDSHAKE, related, token);
        push_or_drop(&mut self.transmits, peer, message);
    }

    fn message(
        &mut self,
        peer: GuidPrefix,
        class: &str,
        related: MessageIdentity,
        token: Token,
    ) -> GenericMessage {
        self.messages = self.messages.saturating_add(1);
        GenericMessage {
            identity: MessageIdentity {
                source_guid: self.own.prefix.with(STATELESS_WRITER),
                sequence_number: self.messages,
            },
            related,
            destination_participant: peer.with(EntityId::PARTICIPANT),
            destination_endpoint: Guid::UNKNOWN,
            source_endpoint: Guid::UNKNOWN,
            class: class.into(),
            data: vec![token],
        }
    }
}

/// A message that finds the queue full is dropped, as on the network, and repeated
/// later.
fn push_or_drop(
    transmits: &mut VecDeque<(GuidPrefix, GenericMessage)>,
    peer: GuidPrefix,
    message: GenericMessage,
) {
    if transmits.len() < TRANSMITS_MAX {
        transmits.push_back((peer, message));
    }
}

/// Queue limit: four messages for each handshake in progress.
const TRANSMITS_MAX: usize = 4 * HANDSHAKES_MAX;
/// Limit of handshakes in progress, and separately of renewals.
const HANDSHAKES_MAX: usize = 64;
/// Limit of renewals with one known peer. An attacker's requests in its name do not
/// displace the peer's own.
const RENEWALS_PER_PEER_MAX: usize = 4;
/// First retransmission pause, as in Fast DDS; long enough for a reply over Wi-Fi.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(125);
/// So many retransmissions come after that pause each: on a link that loses messages a
/// handshake still ends within a second (seed 770 of secured nodes).
const EARLY_RETRIES: u32 = 4;
/// Then the pause doubles up to this.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);
const TIMEOUT_SECONDS: u64 = 10;
const TIMEOUT: Duration = Duration::from_secs(10);
const ANNOUNCEMENT: &str = "dds.sec.auth_request";
const HANDSHAKE: &str = "dds.sec.auth";
/// The writer of the stateless topic (DDS Security 1.1 §7.4.5).
const STATELESS_WRITER: EntityId = EntityId::new([0, 2, 1], 0xc3);
