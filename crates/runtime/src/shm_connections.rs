//! Shared-memory connections and the choice of transport: the peers connected through
//! shared memory, and why others are reached over UDP.
//!
//! When an endpoint matches one of a peer in the same
//! [`ShmScope`](crate::shm_transport::ShmScope), the participant with the smaller prefix
//! requests a connection. Once it is up, it serves all user endpoints of that peer.
//! Discovery uses sockets only. When the connection ends, sockets are used again.
//!
//! On a topic that all processes of a host publish and subscribe to, all match with all.
//! Therefore, beyond the first [`EAGER_CONNECTIONS_MAX`] peers, a connection is requested
//! with the first message.
//!
//! A connected peer sends no user traffic by sockets any more. Its address is one of this
//! host, from which every local user can send. So datagrams in its name are refused
//! ([`ShmConnections::refuses_datagrams_of`]). The kernel identifies the writer of shared
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::Participant;
use pteros_rtps::time::{Duration, Instant};

use crate::lock::{Mutex, rank};
use crate::sample::DeliveryPath;
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::SendPath;
use crate::shm_transport::{
    ConnectionCounts, ConnectionEvent, DisconnectReason, OFF, PARTICIPANT_PROPERTY, ShmScope,
    ShmTransport,
};

/// How long after a connection came up the sockets are emptied first. So earlier messages
/// that the peer sent by socket are not overtaken. On one host, a datagram is in the
/// receiver's socket before the send call returns.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How long after a connection came up an inactive peer may still send by sockets,
/// because it has not noticed the connection.
const NOTICE_TIME: Duration = Duration::from_secs(1);

/// Peers that are connected before there is data to send.
const EAGER_CONNECTIONS_MAX: usize = 16;

/// The delay before a connection that the peer closed is requested again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The shared-memory connections of a context. Thread-safe.
///
/// The driver polls them; matching and publishing request connections. They change the
/// route to a peer in the participant and never access an endpoint.
pub(crate) struct ShmConnections {
    /// The transport, or why there is none.
    transport: Result<Arc<dyn ShmTransport>, String>,
    prefix: GuidPrefix,
    participant: Arc<Mutex<Participant, rank::Participant>>,
    scheduler: Arc<Scheduler>,
    send: Arc<SendPath>,
    peers: Mutex<BTreeMap<GuidPrefix, ConnectionState>, rank::ShmPeers>,
    sockets: SettlingSockets,
}

/// The state of the connection to a peer with matched endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Requested here.
    Requested,
    /// To be requested with the first message of either side.
    OnDemand,
    Connected(Connection),
    Unavailable(String),
    /// To be requested again at that time.
    RetryAt(Instant),
}

/// A connection that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Connection {
    number: u32,
    since: Instant,
    /// The peer has sent by it.
    carries_traffic: bool,
    /// A log line has reported that datagrams in the name of the peer are dropped.
    told_refusal: bool,
}

impl Connection {
    /// Whether datagrams from sockets that were empty at this time cannot be of the peer.
    fn refuses_datagrams(&self, drained_at: Instant) -> bool {
        let age = drained_at.since(self.since);
        age >= NOTICE_TIME || (self.carries_traffic && age >= SETTLE_TIME)
    }
}

/// When the sockets were empty, compared with when the last connection came up.
///
/// A datagram is judged by when it arrived: this process may have been stopped, or late,
/// between its arrival and now. What is in the sockets was sent after they were empty.
/// All values are in nanoseconds.
#[derive(Default)]
struct SettlingSockets {
    /// When the last connection has settled.
    settled_at: AtomicU64,
    /// When its peer must have noticed it.
    noticed_at: AtomicU64,
    /// When the sockets were checked last and were empty.
    drained_at: AtomicU64,
}

impl SettlingSockets {
    fn note_connection(&self, now: Instant) {
        for (at, span) in [
            (&self.settled_at, SETTLE_TIME),
            (&self.noticed_at, NOTICE_TIME),
        ] {
            at.fetch_max(now.after(span).as_nanos(), Ordering::Relaxed);
        }
    }

    /// Whether they are to be checked, until they have been empty after both times.
    fn are_settling(&self, now: Instant) -> bool {
        let drained_at = self.drained_at();
        drained_at.as_nanos() < self.settled_at.load(Ordering::Relaxed)
            || (drained_at < self.noticed_at() && now >= self.noticed_at())
    }

    fn note_drained(&self, now: Instant) {
        self.drained_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    fn drained_at(&self) -> Instant {
        Instant::from_nanos(self.drained_at.load(Ordering::Relaxed))
    }

    fn noticed_at(&self) -> Instant {
        Instant::from_nanos(self.noticed_at.load(Ordering::Relaxed))
    }
}

/// How samples travel between this context and another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerDelivery {
    /// Transport of the samples to and from the participant.
    pub path: DeliveryPath,
    /// Why it is not shared memory, where it might be.
    pub reason: Option<String>,
}

/// The participant property that announces a shared-memory transport.
pub(crate) fn announced_property(
    transport: &Result<Arc<dyn ShmTransport>, String>,
) -> (String, String) {
    let value = match transport {
        Ok(shm) => shm.scope().to_string(),
        Err(_) => OFF.into(),
    };
    (PARTICIPANT_PROPERTY.into(), value)
}

impl ShmConnections {
    pub(crate) fn new(
        transport: Result<Arc<dyn ShmTransport>, String>,
        prefix: GuidPrefix,
        participant: Arc<Mutex<Participant, rank::Participant>>,
        scheduler: Arc<Scheduler>,
        send: Arc<SendPath>,
    ) -> Self {
        Self {
            transport,
            prefix,
            participant,
            scheduler,
            send,
            peers: Mutex::default(),
            sockets: SettlingSockets::default(),
        }
    }

    /// The transport, if there is one.
    pub(crate) fn get(&self) -> Option<&dyn ShmTransport> {
        self.transport.as_deref().ok()
    }

    /// Whether datagrams sent before a peer noticed its connection may still wait in a
    /// socket. Then the sockets are checked, and [`Self::note_drained`] is called once
    /// they are empty.
    pub(crate) fn is_settling(&self, now: Instant) -> bool {
        self.sockets.are_settling(now)
    }

    /// Notes that the sockets were checked at this time or later, and are empty.
    pub(crate) fn note_drained(&self, now: Instant) {
        self.sockets.note_drained(now);
    }

    /// Requests a connection after a match with an endpoint of this peer, unless one
    /// exists or is impossible.
    pub(crate) fn request_connection(&self, now: Instant, peer: GuidPrefix, vendor: VendorId) {
        let Some(shm) = self.get() else {
            return;
        };
        let initiates = {
            let peers = self.peers.lock();
            match peers.get(&peer) {
                Some(
                    ConnectionState::Requested
                    | ConnectionState::OnDemand
                    | ConnectionState::Connected(_),
                ) => return,
                _ => self.prefix < peer && connected_or_requested(&peers) < EAGER_CONNECTIONS_MAX,
            }
        };
        let announced = {
            let participant = self.participant.lock();
            let data = participant.participant(peer);
            data.and_then(|data| property(data).map(str::to_owned))
        };
        let announced = announced.as_deref().filter(|_| vendor == VendorId::PTEROS);
        let reason = self.send.shared_memory_denied(peer);
        let state = match reason.or_else(|| shm.scope().unreachable_reason(announced)) {
            Some(reason) => ConnectionState::Unavailable(reason),
            None if initiates => self.connect_or_defer(shm, now, peer),
            None => ConnectionState::OnDemand,
        };
        self.peers.lock().insert(peer, state);
    }

    fn connect_or_defer(
        &self,
        shm: &dyn ShmTransport,
        now: Instant,
        peer: GuidPrefix,
    ) -> ConnectionState {
        match shm.connect(peer, now) {
            Ok(()) => {
                self.scheduler
                    .schedule(TimeoutOwner::ShmConnections, Some(now));
                ConnectionState::Requested
            }
            Err(reason) => ConnectionState::Unavailable(reason.to_string()),
        }
    }

    /// Whether a connection to this peer is requested with the first message.
    pub(crate) fn is_on_demand(&self, peer: GuidPrefix) -> bool {
        let peers = self.peers.lock();
        peers.get(&peer) == Some(&ConnectionState::OnDemand)
    }

    /// Requests the connections to the processes of a writer's readers that were deferred
    /// until the first message. This message is still sent by socket.
    pub(crate) fn connect_on_demand(&self, now: Instant, writer: Guid) {
        let Some(shm) = self.get() else {
            return;
        };
        let readers: BTreeSet<GuidPrefix> = {
            let participant = self.participant.lock();
            let decisions = participant.endpoints().match_outcomes(writer);
            decisions.map(|(reader, _)| reader.prefix).collect()
        };
        for peer in readers {
            if self.is_on_demand(peer) {
                let state = self.connect_or_defer(shm, now, peer);
                let mut peers = self.peers.lock();
                // It may have come up meanwhile.
                if let Some(unasked) = peers.get_mut(&peer)
                    && *unasked == ConnectionState::OnDemand
                {
                    *unasked = state;
                }
            }
        }
    }

    /// Uses the connection of a participant that was just discovered; it may have
    /// come up before.
    pub(crate) fn use_connection(&self, peer: GuidPrefix) {
        let peers = self.peers.lock();
        let Some(ConnectionState::Connected(connection)) = peers.get(&peer) else {
            return;
        };
        let locator = Locator::shared_memory(connection.number, peer);
        drop(peers);
        self.participant
            .lock()
            .set_shared_memory_route(peer, Some(locator));
    }

    /// Notes that a peer has sent by its connection.
    pub(crate) fn note_traffic_of(&self, peer: GuidPrefix) {
        let mut peers = self.peers.lock();
        if let Some(ConnectionState::Connected(connection)) = peers.get_mut(&peer) {
            connection.carries_traffic = true;
        }
    }

    /// Whether to refuse user traffic from a socket in the name of a participant that
    /// sends by shared memory. The first refusal is logged.
    pub(crate) fn refuses_datagrams_of(&self, peer: GuidPrefix) -> bool {
        let drained_at = self.sockets.drained_at();
        let mut peers = self.peers.lock();
        let Some(ConnectionState::Connected(connection)) = peers.get_mut(&peer) else {
            return false;
        };
        if !connection.refuses_datagrams(drained_at) {
            return false;
        }
        let is_told = std::mem::replace(&mut connection.told_refusal, true);
        drop(peers);
        if !is_told {
            tracing::warn!(
                "datagrams in the name of participant {peer} of this host come by UDP, although \
                 it sends by shared memory: another local process forges them; they are dropped \
                 (counted, not logged again)"
            );
        }
        true
    }

    /// Ends the connection of a removed participant.
    pub(crate) fn end_connection(&self, peer: GuidPrefix) {
        if let Some(shm) = self.get()
            && self.peers.lock().remove(&peer).is_some()
        {
            shm.disconnect(peer);
        }
    }

    /// Polls the transport and handles its connection events. Returns whether the
    /// participant has output.
    pub(crate) fn poll(&self, shm: &dyn ShmTransport, now: Instant) -> bool {
        let mut events = Vec::new();
        let next = shm.poll(now, &mut |event| events.push(event));
        let is_quiet = events.is_empty();
        for event in events {
            self.handle_connection_event(now, event);
        }
        let again = self.retry_connections(now);
        // The sockets are checked then, even if nothing arrives.
        let noticed = Some(self.sockets.noticed_at()).filter(|at| *at > now);
        self.scheduler.schedule(
            TimeoutOwner::ShmConnections,
            next.into_iter().chain(again).chain(noticed).min(),
        );
        !is_quiet
    }

    fn handle_connection_event(&self, now: Instant, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected { peer, connection } => {
                let peer = GuidPrefix(peer);
                tracing::debug!(peer = %peer, connection, "connected by shared memory");
                self.sockets.note_connection(now);
                let mut peers = self.peers.lock();
                let connection = Connection {
                    number: connection,
                    since: now,
                    carries_traffic: false,
                    told_refusal: false,
                };
                peers.insert(peer, ConnectionState::Connected(connection));
                drop(peers);
                self.use_connection(peer);
            }
            ConnectionEvent::Disconnected {
                peer,
                connection,
                reason,
            } => {
                let peer = GuidPrefix(peer);
                tracing::debug!(peer = %peer, connection, %reason, "shared-memory connection ended");
                let mut peers = self.peers.lock();
                let is_it = |state: &&ConnectionState| matches!(state, ConnectionState::Connected(known) if known.number == connection);
                if peers.get(&peer).filter(is_it).is_some() {
                    let initiates = reason == DisconnectReason::ClosedByPeer && self.prefix < peer;
                    let state = if initiates {
                        ConnectionState::RetryAt(now.after(RETRY_DELAY))
                    } else {
                        ConnectionState::Unavailable(reason.to_string())
                    };
                    peers.insert(peer, state);
                }
                drop(peers);
                self.participant.lock().set_shared_memory_route(peer, None);
            }
            ConnectionEvent::Refused { peer, reason } => {
                let mut peers = self.peers.lock();
                let state = peers.get_mut(&GuidPrefix(peer));
                if let Some(state) = state.filter(|s| **s == ConnectionState::Requested) {
                    *state = match reason {
                        DisconnectReason::TimedOut => {
                            ConnectionState::RetryAt(now.after(RETRY_DELAY))
                        }
                        _ => ConnectionState::Unavailable(reason.to_string()),
                    };
                }
            }
            ConnectionEvent::ChunkAvailable => self.scheduler.wake_waiters(),
            // Later kinds of events change no path.
            _ => {}
        }
    }

    /// Retries closed connections. Returns when the next retry is due.
    fn retry_connections(&self, now: Instant) -> Option<Instant> {
        let shm = self.get()?;
        let mut due = Vec::new();
        let mut next = None;
        self.peers.lock().retain(|peer, state| {
            let ConnectionState::RetryAt(at) = state else {
                return true;
            };
            if *at > now {
                next = Some(next.map_or(*at, |next: Instant| next.min(*at)));
                return true;
            }
            due.push(*peer);
            false
        });
        for peer in due {
            if self.participant.lock().participant(peer).is_some() {
                let state = self.connect_or_defer(shm, now, peer);
                self.peers.lock().insert(peer, state);
                next = Some(now);
            }
        }
        next
    }

    /// How samples travel between this context and a participant, itself included,
    /// and why not by shared memory.
    pub(crate) fn delivery_path_to(&self, peer: GuidPrefix) -> PeerDelivery {
        if peer == self.prefix {
            return PeerDelivery {
                path: DeliveryPath::IntraProcess,
                reason: None,
            };
        }
        let reason = match &self.transport {
            Err(reason) => Some(reason.clone()),
            Ok(_) => match self.peers.lock().get(&peer) {
                Some(ConnectionState::Connected(_)) => None,
                Some(ConnectionState::Unavailable(reason)) => Some(reason.clone()),
                Some(ConnectionState::RetryAt(_)) => {
                    Some(DisconnectReason::ClosedByPeer.to_string())
                }
                Some(ConnectionState::Requested) => {
                    Some("the connection is being established".into())
                }
                Some(ConnectionState::OnDemand) => {
                    Some("the first message will request a connection".into())
                }
                None => Some("no endpoints match".into()),
            },
        };
        PeerDelivery {
            path: match reason {
                None => DeliveryPath::SharedMemory,
                Some(_) => DeliveryPath::Network,
            },
            reason,
        }
    }

    /// Why two other participants do not share memory, according to their announcements;
    /// `None` if they should.
    pub(crate) fn why_not_between(&self, one: GuidPrefix, other: GuidPrefix) -> Option<String> {
        let participant = self.participant.lock();
        let announced = |prefix| participant.participant(prefix).and_then(|d| property(d));
        let Some(scope) = announced(one).and_then(ShmScope::parse) else {
            let off = announced(one) == Some(OFF);
            let reason = if off { "switched off" } else { "not offered" };
            return Some(format!("{reason} at the publisher's end"));
        };
        scope.unreachable_reason(announced(other))
    }

    /// Messages that the connections have carried and refused; `None` without
    /// shared memory.
    pub(crate) fn counts(&self) -> Option<ConnectionCounts> {
        self.get().map(|shm| shm.counts())
    }
}

/// Number of peers that are connected or about to be.
fn connected_or_requested(peers: &BTreeMap<GuidPrefix, ConnectionState>) -> usize {
    let sought = |s: &&ConnectionState| {
        matches!(
            s,
            ConnectionState::Requested | ConnectionState::Connected(_)
        )
    };
    peers.values().filter(sought).count()
}

/// The shared-memory property of a participant's announcement.
fn property(data: &ParticipantData) -> Option<&str> {
    let mut properties = data.properties.iter();
    properties
        .find(|(name, _)| name == PARTICIPANT_PROPERTY)
        .map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Instant {
        Instant::ZERO.after(Duration::from_millis(millis))
    }

    fn connection(carries_traffic: bool) -> Connection {
        Connection {
            number: 0,
            since: at(5_000),
            carries_traffic,
            told_refusal: false,
        }
    }

    /// At each time a process reads its sockets until they are empty, or is stopped.
    #[test]
    fn datagrams_are_judged_by_when_the_sockets_were_empty() {
        let sockets = SettlingSockets::default();
        sockets.note_drained(at(4_999));
        assert!(!sockets.are_settling(at(5_000)), "no connection");
        sockets.note_connection(at(5_000));
        let refuses = |carries_traffic: bool| {
            let drained_at = sockets.drained_at();
            connection(carries_traffic).refuses_datagrams(drained_at)
        };
        for millis in [5_000, 5_050] {
            assert!(sockets.are_settling(at(millis)));
            sockets.note_drained(at(millis));
            assert!(!refuses(true) && !refuses(false));
        }
        // Stopped for a minute: what waits may be of the first milliseconds.
        assert!(sockets.are_settling(at(65_000)));
        assert!(!refuses(true) && !refuses(false));
        sockets.note_drained(at(65_000));
        assert!(!sockets.are_settling(at(65_001)));
        assert!(refuses(true) && refuses(false));
    }

    #[test]
    fn an_idle_peer_is_refused_once_the_sockets_were_empty_after_a_second() {
        let sockets = SettlingSockets::default();
        sockets.note_connection(at(5_000));
        sockets.note_drained(at(5_100));
        let refuses = |carries_traffic: bool| {
            connection(carries_traffic).refuses_datagrams(sockets.drained_at())
        };
        assert!(refuses(true) && !refuses(false));
        assert!(!sockets.are_settling(at(5_999)));
        assert!(sockets.are_settling(at(6_000)), "at the timer");
        sockets.note_drained(at(6_000));
        assert!(refuses(false) && !sockets.are_settling(at(6_001)));
    }
}
