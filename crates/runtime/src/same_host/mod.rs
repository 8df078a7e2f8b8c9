//! Same-host peers: processes of this host, discovered by their discovery logs in
//! shared memory.
//!
//! No packet crosses a network, no data is stored twice, and the end of a process is
//! detected at once. A discovery log (`pteros-shm`) carries records; this file defines
//! their content. The first byte is the kind: below 16 an [`Announcement`] of discovery
//! (as in SPDP and SEDP), 16 the participant's node list. Other kinds are reserved. Node
//! lists replace `ros_discovery_info` for same-host peers, so its endpoints are not
//! announced in the log.
//!
//! SPDP discovers a process whose log is not readable, or that belongs to another stack
//! or user. It also discovers a same-host peer whose connection breaks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_msg::cdr::{Representation, to_payload};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::{Announcement, Announcements, LostReason, Participant};
use pteros_rtps::time::{Duration, Instant};
use pteros_shm::{DisconnectReason, DiscoveryLog, DiscoveryLogEvent};

use crate::graph::Graph;
use crate::lock::{Mutex, rank};
use crate::platform::DatagramSockets;
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::shm_transport::ConnectionTotals;

/// First byte of a node list record.
const NODE_LIST_RECORD: u8 = 16;

/// Longest period of liveliness assertions and checks: five times per lease. It bounds
/// local leases.
const ASSERTION_PERIOD_MAX: Duration = Duration::from_secs(4);
const ASSERTIONS_PER_LEASE: i64 = 5;

/// How long the first announcement waits for the reply of each peer, and at most.
const REPLY_WAIT_PER_PEER: Duration = Duration::from_millis(2);
const REPLY_WAIT_MAX: Duration = Duration::from_millis(500);

/// The same-host peers of a context. Thread-safe.
///
/// The driver polls them and serves the participant afterwards. They read and write
/// discovery logs, report to participant and graph, and never access an endpoint.
pub(crate) struct SameHostPeers {
    lease: Duration,
    sockets: Arc<dyn DatagramSockets>,
    participant: Arc<Mutex<Participant, rank::Participant>>,
    graph: Arc<Graph>,
    scheduler: Arc<Scheduler>,
    state: Mutex<SameHostState, rank::SameHostPeers>,
    /// Whether removals reported by same-host peers are deferred.
    has_deferred_removals: AtomicBool,
}

/// State about same-host peers beside their logs.
#[derive(Default)]
struct SameHostState {
    /// When to assert liveliness next.
    next_assertion_at: Instant,
    /// The endpoints that peers have announced so far in the replay of their log, without
    /// those removed later: an endpoint of the past must match nothing. A log bounds it.
    replaying: BTreeMap<GuidPrefix, BTreeMap<Guid, Announcement>>,
    /// Removals deferred until earlier messages were received: a log is read at once, a
    /// socket in its order.
    deferred_removals: Vec<(Instant, DeferredRemoval)>,
}

enum DeferredRemoval {
    Endpoint(GuidPrefix, Announcement),
    SameHostPeer(GuidPrefix, LostReason),
}

/// An event of a discovery log, copied so that the log can be released.
enum PeerLogEvent {
    Reset(GuidPrefix),
    Posted(GuidPrefix, Announcement),
    Nodes(GuidPrefix, Vec<u8>),
    Told(GuidPrefix),
    Beat(GuidPrefix),
    Gone(GuidPrefix, DisconnectReason),
}

impl PeerLogEvent {
    fn from_log_event(event: DiscoveryLogEvent<'_>) -> Option<Self> {
        Some(match event {
            DiscoveryLogEvent::Reset { peer } => Self::Reset(GuidPrefix(peer)),
            DiscoveryLogEvent::Record { peer, record } => match record.split_first() {
                Some((&NODE_LIST_RECORD, list)) => Self::Nodes(GuidPrefix(peer), list.to_vec()),
                _ => Self::Posted(GuidPrefix(peer), Announcement::parse(record)?),
            },
            DiscoveryLogEvent::CaughtUp { peer } => Self::Told(GuidPrefix(peer)),
            DiscoveryLogEvent::LivelinessAsserted { peer } => Self::Beat(GuidPrefix(peer)),
            DiscoveryLogEvent::PeerLost { peer, reason } => Self::Gone(GuidPrefix(peer), reason),
            _ => return None,
        })
    }
}

impl SameHostPeers {
    pub(crate) fn new(
        lease: Duration,
        sockets: Arc<dyn DatagramSockets>,
        participant: Arc<Mutex<Participant, rank::Participant>>,
        graph: Arc<Graph>,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        Self {
            lease,
            sockets,
            participant,
            graph,
            scheduler,
            state: Mutex::default(),
            has_deferred_removals: AtomicBool::new(false),
        }
    }

    /// Appends the present announcements and connects to all peers of this host.
    /// Precedes the first SPDP announcement, so that peers know this process by its
    /// log when they receive that.
    pub(crate) fn connect_to_all(&self, now: Instant) {
        if let Some(discovery_log) = self.sockets.discovery_log() {
            self.append_announcements(now);
            let called = discovery_log.connect_to_all(now.as_nanos());
            tracing::debug!(called, "same-host peers");
            if called > 0 {
                // Peers that connect meanwhile need no announcement.
                let called = i64::try_from(called).unwrap_or(i64::MAX);
                let pause = REPLY_WAIT_PER_PEER
                    .times(called.saturating_add(1))
                    .min(REPLY_WAIT_MAX);
                let at = now.after(pause);
                self.participant
                    .lock()
                    .spdp_writer_mut()
                    .delay_first_announcement(at);
            }
            self.scheduler
                .schedule(TimeoutOwner::SameHostPeers, Some(now));
        }
    }

    /// Appends new announcements of the participant. Call in the order of its
    /// changes, under `match_order`, or before other threads can.
    pub(crate) fn append_announcements(&self, now: Instant) {
        let Some(discovery_log) = self.sockets.discovery_log() else {
            return;
        };
        let Some(notices) = self.participant.lock().take_announcements() else {
            return;
        };
        match notices {
            Announcements::Full(all) => self.rewrite_log(discovery_log, &all),
            Announcements::New(events) => {
                let records: Vec<Vec<u8>> = events.iter().map(Announcement::encode).collect();
                self.append_records(now, discovery_log, &records);
            }
        }
    }

    /// Appends the local node list. Call as [`Self::append_announcements`].
    pub(crate) fn append_node_list(&self, now: Instant, list: &[u8]) {
        if let Some(discovery_log) = self.sockets.discovery_log() {
            self.append_records(now, discovery_log, &[node_list_record(list)]);
        }
    }

    fn append_records(&self, now: Instant, discovery_log: &DiscoveryLog, records: &[Vec<u8>]) {
        let posted = discovery_log.append(now.as_nanos(), records.iter().map(Vec::as_slice));
        if posted.is_err() {
            // The log is full of obsolete records.
            let all = self.participant.lock().all_announcements();
            self.rewrite_log(discovery_log, &all);
        }
        self.scheduler
            .schedule(TimeoutOwner::SameHostPeers, Some(now));
    }

    fn rewrite_log(&self, discovery_log: &DiscoveryLog, all: &[Announcement]) {
        let mut records: Vec<Vec<u8>> = all.iter().map(Announcement::encode).collect();
        let list = to_payload(&self.graph.node_list(), Representation::Xcdr1);
        records.push(node_list_record(&list));
        if discovery_log
            .rewrite(records.iter().map(Vec::as_slice))
            .is_err()
        {
            tracing::error!(
                endpoints = all.len(),
                "same-host peers do not receive new endpoints: their descriptions exceed the discovery log"
            );
        }
    }

    /// Reads the logs of peers, wakes peers, and asserts liveliness when due. Serve
    /// the participant afterwards.
    pub(crate) fn poll(&self, now: Instant, totals: impl FnOnce() -> Option<ConnectionTotals>) {
        let Some(discovery_log) = self.sockets.discovery_log() else {
            return;
        };
        let mut state = self.state.lock();
        let mut events = Vec::new();
        let mut note =
            |event: DiscoveryLogEvent<'_>| events.extend(PeerLogEvent::from_log_event(event));
        if now >= state.next_assertion_at {
            let period = self.assertion_period();
            let was_stopped = state.next_assertion_at != Instant::ZERO
                && now.since(state.next_assertion_at) > period;
            state.next_assertion_at = now.after(period);
            if let Some(totals) = totals() {
                discovery_log.publish_totals(&totals.to_words());
            }
            discovery_log.assert_liveliness();
            if was_stopped {
                // Peers that lost this process notice its liveliness at once.
                discovery_log.wake_peers(now.as_nanos());
            }
        }
        let mut next = discovery_log.poll(now.as_nanos(), &mut note);
        // Each time, because a peer that was stopped for longer than its lease may be
        // back.
        discovery_log.poll_liveliness(&mut note);
        if !events.is_empty() {
            self.handle_log_events(now, discovery_log, &mut state, events);
            // A replay that was requested.
            next = Some(now.as_nanos());
        }
        let next = next.map_or(Instant::FAR_FUTURE, Instant::from_nanos);
        let next = next.min(state.next_assertion_at);
        drop(state);
        self.scheduler
            .schedule(TimeoutOwner::SameHostPeers, Some(next));
    }

    /// Reads a part of a peer's log. Returns false if nothing is unread. Serve the
    /// participant after each part.
    pub(crate) fn read_log_of(&self, now: Instant, peer: GuidPrefix) -> bool {
        let Some(discovery_log) = self.sockets.discovery_log() else {
            return false;
        };
        if !discovery_log.has_unread(peer.0) {
            return false;
        }
        let mut state = self.state.lock();
        let mut events = Vec::new();
        discovery_log.poll_peer(peer.0, &mut |event| {
            events.extend(PeerLogEvent::from_log_event(event))
        });
        self.handle_log_events(now, discovery_log, &mut state, events);
        true
    }

    /// Whether another participant is not known and may become a same-host peer.
    pub(crate) fn may_connect(&self, peer: GuidPrefix) -> bool {
        self.sockets.discovery_log().is_some() && !self.is_known(peer)
    }

    /// Whether an unknown participant is connecting as a same-host peer.
    pub(crate) fn is_connecting_to(&self, peer: GuidPrefix) -> bool {
        let log = self.sockets.discovery_log();
        !self.is_known(peer) && log.is_some_and(|log| log.is_connecting_to(peer.0))
    }

    fn is_known(&self, peer: GuidPrefix) -> bool {
        self.participant.lock().participant(peer).is_some()
    }

    /// Whether removals are deferred.
    pub(crate) fn has_deferred_removals(&self) -> bool {
        // Relaxed: set and cleared by the thread that drives, or before it.
        self.has_deferred_removals.load(Ordering::Relaxed)
    }

    /// When the oldest removal was deferred.
    pub(crate) fn oldest_deferred_removal(&self) -> Option<Instant> {
        if !self.has_deferred_removals() {
            return None;
        }
        let state = self.state.lock();
        state.deferred_removals.first().map(|(at, _)| *at)
    }

    /// Applies deferred removals after earlier messages were received. Serve the
    /// participant afterwards.
    pub(crate) fn apply_deferred_removals(&self, now: Instant) {
        if !self.has_deferred_removals() {
            return;
        }
        let removals = {
            let mut state = self.state.lock();
            self.has_deferred_removals.store(false, Ordering::Relaxed);
            std::mem::take(&mut state.deferred_removals)
        };
        for (_, end) in removals {
            let mut participant = self.participant.lock();
            match end {
                DeferredRemoval::Endpoint(peer, announcement) => {
                    participant.handle_announcement(now, peer, &announcement);
                }
                DeferredRemoval::SameHostPeer(peer, reason) => {
                    participant.remove_same_host_peer(peer, reason)
                }
            }
        }
    }

    fn defer_removal(&self, now: Instant, state: &mut SameHostState, end: DeferredRemoval) {
        state.deferred_removals.push((now, end));
        self.has_deferred_removals.store(true, Ordering::Relaxed);
    }

    fn assertion_period(&self) -> Duration {
        let peer_lease = self.participant.lock().shortest_same_host_lease();
        let shortest = peer_lease.map_or(self.lease, |lease| lease.min(self.lease));
        Duration::from_nanos(shortest.as_nanos() / ASSERTIONS_PER_LEASE).min(ASSERTION_PERIOD_MAX)
    }

    fn handle_log_events(
        &self,
        now: Instant,
        discovery_log: &DiscoveryLog,
        state: &mut SameHostState,
        events: Vec<PeerLogEvent>,
    ) {
        for one in events {
            self.handle_log_event(now, discovery_log, state, one);
        }
    }

    fn handle_log_event(
        &self,
        now: Instant,
        discovery_log: &DiscoveryLog,
        state: &mut SameHostState,
        events: PeerLogEvent,
    ) {
        match events {
            PeerLogEvent::Reset(peer) => {
                state.replaying.insert(peer, BTreeMap::new());
            }
            PeerLogEvent::Posted(peer, announcement) => {
                self.handle_announcement(now, state, peer, announcement)
            }
            PeerLogEvent::Nodes(peer, list) => {
                let account = self.participant.lock().memory_account(peer);
                match self.graph.handle_node_list(peer, &list, &account) {
                    Ok(outcome) if outcome.is_accepted => self.scheduler.wake_waiters(),
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, %peer, "node list"),
                }
            }
            PeerLogEvent::Told(peer) => {
                let replayed = state.replaying.remove(&peer).unwrap_or_default();
                let mut participant = self.participant.lock();
                for announcement in replayed.values() {
                    participant.handle_announcement(now, peer, announcement);
                }
                let announced: Vec<_> = replayed.into_keys().collect();
                participant.retain_endpoints(peer, &announced);
            }
            PeerLogEvent::Beat(peer) => {
                let mut participant = self.participant.lock();
                if participant.is_same_host_peer(peer) {
                    participant.renew_lease(peer, now);
                } else {
                    // It was silent for long but is alive.
                    drop(participant);
                    discovery_log.replay(peer.0);
                }
            }
            PeerLogEvent::Gone(peer, reason) => {
                state.replaying.remove(&peer);
                tracing::debug!(%peer, %reason, "same-host peer lost");
                let reason = match reason {
                    DisconnectReason::ProcessEnded => LostReason::ProcessEnded,
                    _ => LostReason::Disposed,
                };
                self.defer_removal(now, state, DeferredRemoval::SameHostPeer(peer, reason));
            }
        }
    }

    fn handle_announcement(
        &self,
        now: Instant,
        state: &mut SameHostState,
        peer: GuidPrefix,
        announcement: Announcement,
    ) {
        if let Some(replayed) = state.replaying.get_mut(&peer) {
            if let Announcement::EndpointRemoved(endpoint) = &announcement {
                replayed.remove(endpoint);
            }
            if let Some(endpoint) = endpoint_of(&announcement) {
                replayed.insert(endpoint, announcement);
                return;
            }
        }
        if matches!(announcement, Announcement::EndpointRemoved(_)) {
            return self.defer_removal(now, state, DeferredRemoval::Endpoint(peer, announcement));
        }
        self.participant
            .lock()
            .handle_announcement(now, peer, &announcement);
    }
}

/// The endpoint of an announcement that announces existence.
fn endpoint_of(announcement: &Announcement) -> Option<Guid> {
    let Announcement::Endpoint(payload) = announcement else {
        return None;
    };
    EndpointData::parse_key(payload)
}

fn node_list_record(list: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(list.len() + 1);
    record.push(NODE_LIST_RECORD);
    record.extend_from_slice(list);
    record
}
