//! The Zenoh transport: implements the runtime's transport trait on one Zenoh session.
//!
//! Liveliness tokens provide discovery ([`crate::peers`]), the inbox provides samples,
//! requests and replies. Gaps of sequence numbers show losses. Data for a KEEP_ALL reader
//! without space is held here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_msg::hash::TypeHash;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, Carrier, ChangeKind};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::qos::Liveliness;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_runtime::transport::{
    NodeName, RemoteEndpointRecord, SampleTransport, Transport, TransportEvent, TransportSample,
    TransportSetup,
};
use zenoh::pubsub::Subscriber;
use zenoh::query::Query;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

use crate::attachment::Attachment;
use crate::certificate_watch::CertificateWatch;
use crate::declarer::Declarer;
use crate::gid::Gid;
use crate::inbox::{Arrival, Inbox};
use crate::links::{Link, Outgoing};
use crate::local::Local;
use crate::peers::Peers;
use crate::position::Position;
use crate::requests::{OpenRequest, OpenRequests};
use crate::session::OpenedSession;
use crate::session_id::SessionId;
use crate::token::Token;
use crate::undeclared_publishers::{UNDECLARED_WAIT_BUSY, UndeclaredPublishers};
use crate::unsupported::not_on_zenoh;

/// Arrivals per poll. Node lists are rebuilt at most once per this number, because a list
/// is as long as its session has endpoints.
const ARRIVALS_PER_POLL: usize = 64;
/// Early data: data of endpoints whose token has not arrived, or whose session waits for
/// RTPS. When full, the oldest is dropped and counted.
const EARLY_MAX: usize = 256;
/// Bytes of early data. The newest is kept whatever its size.
const EARLY_BYTES_MAX: usize = 64 << 20;
/// Wait of early data for the token.
const EARLY_WAIT: Duration = Duration::from_millis(2_500);
/// Held data per writer, which waits for a KEEP_ALL reader. When full, new data is lost.
const HELD_MAX: usize = 4_096;
/// Bytes of held data of all writers.
const HELD_BYTES_MAX: usize = 256 << 20;

/// See the module documentation. Thread-safe.
pub struct ZenohTransport {
    session: Session,
    inbox: Arc<Inbox>,
    local: Mutex<Local>,
    state: Mutex<State>,
    declarer: Arc<Declarer>,
    unanswered: AtomicU64,
    /// Samples dropped because their publisher was not yet declared.
    unsent: AtomicU64,
    tokens: Mutex<Option<Subscriber<()>>>,
    /// Claim to listen for the host's other sessions, until closed.
    rendezvous: Mutex<Option<UnixListener>>,
    /// Certificate watch, until closed.
    watch: Mutex<Option<CertificateWatch>>,
}

struct State {
    peers: Peers,
    /// Per match of remote writer and local reader: the last sequence number.
    last: BTreeMap<(Guid, Guid), Position>,
    held: BTreeMap<Guid, Held>,
    held_bytes: usize,
    /// Early or held arrivals that are due before the inbox.
    ready: VecDeque<Arrival>,
    early: VecDeque<(Instant, Arrival)>,
    undeclared: UndeclaredPublishers,
    early_bytes: usize,
    requests: OpenRequests<Query>,
    /// Last number of each server's writer of replies.
    replies: BTreeMap<Guid, i64>,
    wanted: Vec<TransportEvent>,
    /// Losses of ending matches, reported before the match ends.
    losses: Vec<TransportEvent>,
    /// By local writer: whether a subscriber of another session has its key.
    has_readers: BTreeMap<Guid, bool>,
    /// Local writers that only such subscribers need.
    wanted_for_readers: BTreeSet<Guid>,
    /// Either set may have changed.
    are_readers_stale: bool,
    /// Arrivals since node lists were built.
    since_lists: usize,
    unannounced: u64,
}

/// A remote writer whose data is held.
#[derive(Default)]
struct Held {
    readers: usize,
    waiting: VecDeque<Arrival>,
    /// Its latest token change, handled after its data.
    token: Option<(String, bool)>,
}

impl ZenohTransport {
    /// Takes over an open session and subscribes to the tokens of the domain.
    ///
    /// # Errors
    /// Zenoh's, as text.
    pub fn new(opened: OpenedSession, setup: TransportSetup) -> Result<Self, String> {
        let OpenedSession {
            session,
            access,
            rendezvous,
            watch,
        } = opened;
        let id = SessionId::from_le_bytes(session.zid().to_le_bytes());
        let TransportSetup {
            domain_id,
            limits,
            rtps_reach,
            ..
        } = setup;
        let inbox = Arc::new(Inbox::new(
            setup.scheduler,
            // As many as the endpoint tables hold.
            limits.endpoints.saturating_mul(2),
        ));
        let receiver = inbox.clone();
        let tokens = session
            .liveliness()
            .declare_subscriber(Token::all_of(domain_id))
            .history(true)
            .callback(move |sample| {
                let is_alive = sample.kind() == SampleKind::Put;
                receiver.push_token(sample.key_expr().as_str(), is_alive);
            })
            .wait()
            .map_err(|error| format!("subscribe to liveliness tokens: {error}"))?;
        let declarer = Declarer::start().map_err(|error| format!("start a thread: {error}"))?;
        let declarer = Arc::new(declarer);
        let local = Local::new(
            session.clone(),
            declarer.clone(),
            id,
            domain_id,
            setup.enclave,
            inbox.clone(),
            limits.sample_bytes,
        )
        .with_access(access);
        Ok(Self {
            session,
            inbox,
            local: Mutex::new(local),
            state: Mutex::new(State::new(Peers::new(id, domain_id, limits, rtps_reach))),
            declarer,
            unanswered: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            tokens: Mutex::new(Some(tokens)),
            rendezvous: Mutex::new(rendezvous),
            watch: Mutex::new(watch),
        })
    }

    fn add_local(&self, matched: &Arc<EndpointData>) {
        let mut state = self.state.lock();
        state.peers.matcher_mut().add_local(matched);
        self.schedule(&state);
    }

    fn schedule(&self, state: &State) {
        let is_ready = state.are_readers_stale
            || !state.losses.is_empty()
            || state.peers.has_events()
            || !state.ready.is_empty()
            || !state.wanted.is_empty();
        let at_once = is_ready.then_some(Instant::ZERO);
        let early = state.early.front().map(|(until, _)| *until);
        let waiting = early.into_iter().chain(state.undeclared.next_end());
        let expiry = waiting.chain(state.peers.next_expiry()).min();
        self.inbox.schedule(at_once.or(expiry));
    }

    /// Updates which local writers have subscribers without a token. Zenoh reports only
    /// whether some subscriber has the key. A suppressed session's subscriber of that key
    /// accounts for it, and gets its samples by RTPS.
    fn update_wanted(&self, state: &mut State) {
        for (writer, has_readers) in self.inbox.take_matching() {
            state.has_readers.insert(writer, has_readers);
            state.are_readers_stale = true;
        }
        if !std::mem::take(&mut state.are_readers_stale) {
            return;
        }
        let local = self.local.lock();
        for (writer, has_readers) in &state.has_readers {
            let link = local.link(*writer);
            let is_wanted = *has_readers
                && link.is_some_and(|link| !state.peers.is_read_by_suppressed(link.key()));
            let has_changed = if is_wanted {
                state.wanted_for_readers.insert(*writer)
            } else {
                state.wanted_for_readers.remove(writer)
            };
            if has_changed {
                let writer = *writer;
                state
                    .wanted
                    .push(TransportEvent::WriterWanted { writer, is_wanted });
            }
        }
    }

    /// Handles one arrival. Returns whether the last event is a sample.
    fn handle(
        &self,
        now: Instant,
        state: &mut State,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        match arrival {
            Arrival::Token { key, is_alive } => {
                state.note_token(now, key, is_alive);
                false
            }
            Arrival::Sample { attachment, .. } => {
                let gid = attachment.gid;
                match state.peers.remote(gid) {
                    Some(remote) => state.deliver(now, remote.main, arrival, events),
                    None if self.local.lock().is_own(gid) => false,
                    None if state.peers.is_on_rtps(gid) => false,
                    None => state.keep_early(now, arrival),
                }
            }
            Arrival::Request { attachment, .. } => match state.peers.remote(attachment.gid) {
                Some(remote) => match remote.replies {
                    Some(replies) => {
                        self.deliver_request(state, remote.main, replies, arrival, events)
                    }
                    None => state.refuse(),
                },
                // A client's call ends with an error if RTPS now reaches its server.
                None if state.peers.is_on_rtps(attachment.gid) => false,
                None => state.keep_early(now, arrival),
            },
            Arrival::Reply { .. } => state.deliver_reply(arrival, events),
        }
    }

    fn deliver_request(
        &self,
        state: &mut State,
        client: Guid,
        replies: Guid,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        let Arrival::Request {
            server,
            attachment,
            payload,
            query,
        } = arrival
        else {
            return false;
        };
        // The server may have been removed while the request was in the inbox.
        if self.local.lock().link(server).is_none() {
            return false;
        }
        let closed = state.requests.push(OpenRequest {
            server,
            client: replies,
            sequence: attachment.sequence,
            bytes: payload.len(),
            query,
        });
        self.unanswered.fetch_add(closed, Ordering::Relaxed);
        let change = CacheChange {
            related_sample_identity: Some(SampleIdentity {
                writer: replies,
                sequence: SequenceNumber::UNKNOWN,
            }),
            ..received(
                client,
                attachment.sequence,
                attachment.source_timestamp,
                payload,
            )
        };
        events.push(sample(change, vec![server]));
        true
    }
}

impl ZenohTransport {
    /// The query of a reply, and the reply's attachment.
    fn reply_to(
        &self,
        server: &Link,
        reply: &CacheChange,
        stamp: i64,
    ) -> Option<(Attachment, Option<Query>)> {
        let related = reply.related_sample_identity?;
        let mut state = self.state.lock();
        let endpoint = server.endpoint();
        let query = state
            .requests
            .take(endpoint, related.writer, related.sequence.0);
        drop(state);
        let query = query?;
        let asked = Attachment::parse(&query.attachment()?.to_bytes())?;
        let attachment = Attachment {
            source_timestamp: stamp,
            ..asked
        };
        Some((attachment, Some(query)))
    }
}

impl State {
    fn new(peers: Peers) -> Self {
        Self {
            peers,
            last: BTreeMap::new(),
            held: BTreeMap::new(),
            held_bytes: 0,
            ready: VecDeque::new(),
            early: VecDeque::new(),
            undeclared: UndeclaredPublishers::default(),
            early_bytes: 0,
            requests: OpenRequests::new(),
            replies: BTreeMap::new(),
            wanted: Vec::new(),
            losses: Vec::new(),
            has_readers: BTreeMap::new(),
            wanted_for_readers: BTreeSet::new(),
            are_readers_stale: false,
            since_lists: 0,
            unannounced: 0,
        }
    }

    /// Appends discovery events, and counts samples per match.
    fn take_discovery(&mut self, events: &mut Vec<TransportEvent>) {
        events.append(&mut self.losses);
        let before = events.len();
        self.peers.take_discovery(events);
        for event in events.iter().skip(before) {
            match event {
                TransportEvent::Discovery(ParticipantEvent::Matched { local, remote, .. }) => {
                    self.last.insert((remote.guid, *local), Position::default());
                }
                TransportEvent::Discovery(ParticipantEvent::Unmatched { local, remote }) => {
                    self.last.remove(&(*remote, *local));
                }
                TransportEvent::Discovery(ParticipantEvent::EndpointLost(guid)) => {
                    self.replies.remove(guid);
                    self.requests.remove_client(*guid);
                }
                _ => {}
            }
        }
        events.append(&mut self.wanted);
    }

    /// Appends changed node lists: at once if no arrivals are left, else once for many
    /// arrivals. Call it before each arrival, after [`State::take_discovery`].
    fn take_node_lists(&mut self, is_drained: bool, events: &mut Vec<TransportEvent>) {
        if is_drained || self.since_lists >= ARRIVALS_PER_POLL {
            self.since_lists = 0;
            self.peers.take_node_lists(events);
        }
        self.since_lists += 1;
    }

    fn note_token(&mut self, now: Instant, key: String, is_alive: bool) {
        self.are_readers_stale = true;
        let remote = self.peers.remote_of_token(&key);
        if let Some(held) = remote.and_then(|remote| self.held.get_mut(&remote.main)) {
            held.token = Some((key, is_alive));
        } else if !is_alive && !self.undeclared.is_full() && self.peers.is_publisher(&key) {
            self.undeclared.push(now, key);
        } else if !is_alive {
            self.peers.remove(&key);
        } else if self.undeclared.take_back(&key) {
            // The publisher is still announced.
        } else if let Some(gid) = self.peers.add(now, &key) {
            self.take_early(gid);
        }
    }

    /// Removes the publishers whose wait ended at least `for_long` ago. A publisher with
    /// held samples is removed after them. Returns whether any was due.
    fn end_undeclared(&mut self, now: Instant, for_long: Duration) -> bool {
        let mut any = false;
        while let Some(key) = self.undeclared.pop_ended(now, for_long) {
            any = true;
            self.are_readers_stale = true;
            let remote = self.peers.remote_of_token(&key);
            if let Some(held) = remote.and_then(|remote| self.held.get_mut(&remote.main)) {
                held.token = Some((key, false));
            } else {
                self.peers.remove(&key);
            }
        }
        any
    }

    /// Counts the readers for which a writer's data is held. After the last one the data
    /// is released.
    fn hold(&mut self, writer: Guid, holds: bool) {
        if holds {
            self.held.entry(writer).or_default().readers += 1;
            return;
        }
        let Some(held) = self.held.get_mut(&writer) else {
            return;
        };
        held.readers = held.readers.saturating_sub(1);
        if held.readers > 0 {
            return;
        }
        let held = self.held.remove(&writer).unwrap_or_default();
        let bytes: usize = held.waiting.iter().map(Arrival::bytes).sum();
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        self.ready.extend(held.waiting);
        let token = held.token;
        let token = token.map(|(key, is_alive)| Arrival::Token { key, is_alive });
        self.ready.extend(token);
    }

    fn deliver(
        &mut self,
        now: Instant,
        writer: Guid,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        if let Some(held) = self.held.get_mut(&writer) {
            let bytes = self.held_bytes.saturating_add(arrival.bytes());
            if held.waiting.len() >= HELD_MAX || bytes > HELD_BYTES_MAX {
                // Its number is missing from later samples, which reports the loss.
                return false;
            }
            self.held_bytes = bytes;
            held.waiting.push_back(arrival);
            return false;
        }
        let Arrival::Sample {
            reader,
            attachment,
            payload,
        } = arrival
        else {
            return false;
        };
        // hiroz numbers samples from 0, RTPS from 1.
        let first = i64::from(self.peers.is_of_hiroz(attachment.gid));
        let sequence = attachment.sequence.saturating_add(first);
        if let Some(position) = self.last.get_mut(&(writer, reader)) {
            let count = position.take(now, sequence);
            if count > 0 {
                events.push(TransportEvent::SamplesLost {
                    writer,
                    reader: Some(reader),
                    count,
                });
            }
        }
        let change = received(writer, sequence, attachment.source_timestamp, payload);
        events.push(sample(change, vec![reader]));
        true
    }

    fn deliver_reply(&mut self, arrival: Arrival, events: &mut Vec<TransportEvent>) -> bool {
        let Arrival::Reply {
            client,
            sequence,
            replier,
            service,
            source_timestamp,
            payload,
        } = arrival
        else {
            return false;
        };
        let Some(server) = self.peers.replier(replier, &service) else {
            return self.refuse();
        };
        // A server numbers its replies per client, while the reader needs one sequence.
        let number = self.replies.entry(server).or_default();
        *number += 1;
        let change = CacheChange {
            related_sample_identity: Some(SampleIdentity {
                writer: client,
                sequence: SequenceNumber(sequence),
            }),
            ..received(server, *number, source_timestamp, payload)
        };
        events.push(sample(change, Vec::new()));
        true
    }

    fn refuse(&mut self) -> bool {
        self.unannounced += 1;
        false
    }

    fn keep_early(&mut self, now: Instant, arrival: Arrival) -> bool {
        self.early_bytes = self.early_bytes.saturating_add(arrival.bytes());
        self.early.push_back((now.after(EARLY_WAIT), arrival));
        if self.early.len() > EARLY_MAX || self.early_bytes > EARLY_BYTES_MAX {
            // The wait for RTPS is cut short.
            self.go_on_with_waiting(Instant::FAR_FUTURE);
        }
        while self.early.len() > EARLY_MAX
            || (self.early_bytes > EARLY_BYTES_MAX && self.early.len() > 1)
        {
            self.drop_oldest_early();
        }
        false
    }

    /// Announces the sessions that RTPS did not reach in time, and releases their data.
    fn go_on_with_waiting(&mut self, now: Instant) {
        for gid in self.peers.expire(now) {
            self.take_early(gid);
            self.are_readers_stale = true;
        }
    }

    /// RTPS reaches a participant from now on, or no longer. Its held and early data is
    /// dropped. Samples owed to a reader count as lost.
    fn note_rtps_participant(&mut self, now: Instant, prefix: GuidPrefix, is_reached: bool) {
        self.are_readers_stale = true;
        if is_reached {
            self.lose_waiting(prefix);
        }
        for gid in self.peers.note_rtps_participant(now, prefix, is_reached) {
            self.take_early(gid);
        }
        let peers = &self.peers;
        let mut bytes = 0;
        self.early.retain(|(_, arrival)| {
            let is_on_rtps = arrival.sender().is_some_and(|gid| peers.is_on_rtps(gid));
            bytes += if is_on_rtps { arrival.bytes() } else { 0 };
            !is_on_rtps
        });
        self.early_bytes = self.early_bytes.saturating_sub(bytes);
    }

    /// Drops the waiting samples of a participant and counts them as lost.
    fn lose_waiting(&mut self, prefix: GuidPrefix) {
        let is_its = |writer: &&Guid| writer.prefix == prefix;
        let writers: Vec<Guid> = self.held.keys().filter(is_its).copied().collect();
        let mut waiting = Vec::new();
        for writer in writers {
            let held = self.held.remove(&writer).unwrap_or_default();
            let bytes: usize = held.waiting.iter().map(Arrival::bytes).sum();
            self.held_bytes = self.held_bytes.saturating_sub(bytes);
            waiting.extend(held.waiting.into_iter().map(|arrival| (writer, arrival)));
            if let Some((key, is_alive)) = held.token {
                self.ready.push_back(Arrival::Token { key, is_alive });
            }
        }
        for arrival in std::mem::take(&mut self.ready) {
            let sender = arrival.sender().and_then(|gid| self.peers.remote(gid));
            match sender {
                Some(remote) if remote.main.prefix == prefix => {
                    waiting.push((remote.main, arrival))
                }
                _ => self.ready.push_back(arrival),
            }
        }
        let mut lost: BTreeMap<(Guid, Guid), u64> = BTreeMap::new();
        for (writer, arrival) in waiting {
            if let Arrival::Sample { reader, .. } = arrival {
                *lost.entry((writer, reader)).or_default() += 1;
            }
        }
        let losses = lost.into_iter().map(|((writer, reader), count)| {
            let reader = Some(reader);
            TransportEvent::SamplesLost {
                writer,
                reader,
                count,
            }
        });
        self.losses.extend(losses);
    }

    fn drop_oldest_early(&mut self) {
        if let Some((_, arrival)) = self.early.pop_front() {
            self.early_bytes = self.early_bytes.saturating_sub(arrival.bytes());
            self.unannounced += 1;
        }
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.early.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest_early();
        }
    }

    /// Releases the early data of an endpoint whose token has arrived.
    fn take_early(&mut self, gid: Gid) {
        let peers = &self.peers;
        let is_its = |arrival: &Arrival| {
            let sender = arrival.sender();
            sender.is_some_and(|sender| peers.gid_of_token(sender) == gid)
        };
        let all = std::mem::take(&mut self.early);
        for (until, arrival) in all {
            if is_its(&arrival) {
                self.early_bytes = self.early_bytes.saturating_sub(arrival.bytes());
                self.ready.push_back(arrival);
            } else {
                self.early.push_back((until, arrival));
            }
        }
    }
}

fn received(writer: Guid, sequence: i64, stamp: i64, payload: Bytes) -> CacheChange {
    CacheChange {
        source_timestamp: (stamp > 0).then(|| Timestamp::from_nanos(stamp)),
        ..CacheChange::new(writer, SequenceNumber(sequence), payload)
    }
}

fn sample(change: CacheChange, readers: Vec<Guid>) -> TransportEvent {
    TransportEvent::Sample(Box::new(TransportSample { change, readers }))
}

impl Transport for ZenohTransport {
    fn name(&self) -> &str {
        "zenoh"
    }

    fn why_not(&self, endpoint: &EndpointData) -> Option<Cow<'static, str>> {
        if endpoint.topic == DISCOVERY_TOPIC {
            // Tokens announce its contents.
            return None;
        }
        let reason = self.lacks(endpoint).map(Cow::Borrowed);
        reason.or_else(|| self.local.lock().why_not(endpoint).map(Cow::Owned))
    }

    fn lacks(&self, endpoint: &EndpointData) -> Option<&'static str> {
        not_on_zenoh(endpoint)
    }

    fn announce(&self, _now: Instant, endpoint: &Arc<EndpointData>) {
        let attached = self.local.lock().announce(endpoint);
        if let Some(matched) = attached {
            self.add_local(&matched);
        }
    }

    fn withdraw(&self, _now: Instant, endpoint: Guid) {
        self.local.lock().withdraw(endpoint);
        let mut state = self.state.lock();
        state.peers.matcher_mut().remove_local(endpoint);
        state.requests.remove_server(endpoint);
        state.has_readers.remove(&endpoint);
        state.wanted_for_readers.remove(&endpoint);
        self.schedule(&state);
    }

    fn assert_liveliness(&self, _now: Instant, _kind: Liveliness) {
        // A token exists as long as its session.
    }

    fn poll(&self, now: Instant, events: &mut Vec<TransportEvent>) {
        let mut state = self.state.lock();
        state.go_on_with_waiting(now);
        state.end_undeclared(now, UNDECLARED_WAIT_BUSY);
        self.update_wanted(&mut state);
        for handled in 0.. {
            state.take_discovery(events);
            let next = || state.ready.pop_front().or_else(|| self.inbox.pop());
            let next = (handled < ARRIVALS_PER_POLL).then(next).flatten();
            state.take_node_lists(next.is_none(), events);
            let Some(arrival) = next else {
                // The last samples may have been in the inbox for longer than the wait.
                let is_drained = handled < ARRIVALS_PER_POLL;
                if is_drained && state.end_undeclared(now, Duration::ZERO) {
                    continue;
                }
                break;
            };
            if self.handle(now, &mut state, arrival, events) {
                break;
            }
        }
        state.drop_expired(now);
        self.schedule(&state);
    }

    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        let state = self.state.lock();
        state.peers.matcher().remotes().for_each(|known| see(known));
    }

    fn with_endpoint(&self, guid: Guid, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) -> bool {
        let state = self.state.lock();
        let known = state.peers.matcher().remote(guid);
        if let Some(known) = known {
            see(known);
        }
        known.is_some()
    }

    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        self.state.lock().peers.matcher().exceeded_limit()
    }

    fn close(&self, _now: Instant) {
        self.declarer.close();
        drop(self.watch.lock().take());
        self.state.lock().requests.clear();
        if let Err(error) = self.session.close().wait() {
            tracing::debug!("close the Zenoh session: {error}");
        }
        // After this nothing is undeclared, so no call below blocks.
        self.declarer.join();
        self.local.lock().clear();
        drop(self.tokens.lock().take());
        // The port is free for another session.
        drop(self.rendezvous.lock().take());
    }
}

impl SampleTransport for ZenohTransport {
    fn carrier(&self) -> Carrier {
        Carrier::Zenoh
    }

    fn keeps_history(&self) -> bool {
        true
    }

    fn attach_endpoint(&self, _now: Instant, endpoint: Guid, node: &NodeName<'_>) {
        let Some(attached) = self.local.lock().attach(endpoint, node) else {
            return;
        };
        if attached.keeps_samples {
            self.state.lock().wanted.push(TransportEvent::WriterWanted {
                writer: endpoint,
                is_wanted: true,
            });
        }
        self.add_local(&attached.matched);
    }

    fn note_content_filter(&self, reader: Guid, filter: Option<&Arc<ContentFilter>>) {
        self.local.lock().note_filter(reader, filter.cloned());
    }

    fn await_readiness(&self, writer: Guid) {
        let link = self.local.lock().link(writer);
        if let Some(link) = link {
            link.await_readiness();
        }
    }

    fn note_service_hash(&self, endpoint: Guid, hash: &TypeHash) {
        let hash = hash.to_string();
        self.local.lock().note_service_hash(endpoint, hash);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let state = self.state.lock();
        vec![
            // Tokens: malformed, of another domain, or above a limit.
            (
                "refused_tokens",
                state.peers.refused_count() + self.inbox.refused_token_count(),
            ),
            // Data without a valid attachment or payload, or above the size limit.
            ("malformed", self.inbox.malformed_count()),
            // Data that the receiving threads polled too late.
            ("dropped", self.inbox.dropped_count()),
            // Data whose sender no token announces.
            ("unannounced", state.unannounced),
            // Requests closed without a reply because of the limit.
            ("unanswered", self.unanswered.load(Ordering::Relaxed)),
            // Messages dropped because Zenoh declared their endpoint too late.
            ("unsent", self.unsent.load(Ordering::Relaxed)),
        ]
    }

    fn note_rtps_participant(&self, now: Instant, prefix: GuidPrefix, is_reached: bool) {
        let mut state = self.state.lock();
        state.note_rtps_participant(now, prefix, is_reached);
        self.schedule(&state);
    }

    fn announce_nodes(&self, _now: Instant, nodes: &ParticipantEntitiesInfo) {
        self.local.lock().announce_nodes(nodes);
    }

    fn assert_writer(&self, _now: Instant, _writer: Guid) {
        // A token exists as long as its session.
    }

    fn write(&self, _now: Instant, sample: &TransportSample) {
        let change = &sample.change;
        if change.kind != ChangeKind::Alive {
            return;
        }
        let stamp = change.source_timestamp.map_or(0, Timestamp::as_nanos);
        let local = self.local.lock();
        let own = local.link(change.writer);
        let server = || local.server_of(change.writer);
        let Some(link) = own.clone().or_else(server) else {
            return;
        };
        drop(local);
        let message = if own.is_some() {
            let attachment = Attachment {
                sequence: change.sequence.0,
                source_timestamp: stamp,
                gid: link.gid,
            };
            Some((attachment, None))
        } else {
            self.reply_to(&link, change, stamp)
        };
        let Some((attachment, query)) = message else {
            return;
        };
        let unsent = link.queue(Outgoing {
            attachment,
            payload: change.payload.clone(),
            query,
        });
        self.unsent.fetch_add(unsent, Ordering::Relaxed);
    }

    fn flush(&self, _now: Instant, writer: Guid) {
        let local = self.local.lock();
        let link = local.link(writer).or_else(|| local.server_of(writer));
        drop(local);
        if let Some(link) = link {
            link.flush(&self.inbox);
        }
    }

    fn hold(&self, writer: Guid, holds: bool) {
        let mut state = self.state.lock();
        state.hold(writer, holds);
        self.schedule(&state);
    }

    fn has_space(&self, _writer: Guid, _bytes: usize) -> bool {
        // A KEEP_ALL publisher waits in `flush` instead.
        true
    }

    fn is_acknowledged(&self, _writer: Guid) -> bool {
        // Zenoh has no acknowledgements.
        true
    }
}

/// Topic of the runtime's own node lists.
const DISCOVERY_TOPIC: &str = "ros_discovery_info";

#[cfg(test)]
mod tests {
    use pteros::config::{DiscoveryRange, ZenohSettings};
    use pteros::prelude::{Context, ContextOptions};
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;
    use pteros_runtime::limits::Limits;
    use pteros_runtime::transport::{OpenTransport, RtpsReach};

    use super::*;
    use crate::session::{claim_rendezvous, open_session};
    use crate::undeclared_publishers::UNDECLARED_WAIT;

    const TOKEN: &str = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/1/MP/%/%/talker/%chatter/\
        std_msgs::msg::dds_::String_/RIHS01_ab/::,7:,:,:3,1,0";

    /// A state with one discovered writer.
    fn state() -> (State, Guid) {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let mut state = State::new(Peers::new(own, 0, Limits::default(), RtpsReach::Off));
        state.note_token(Instant::ZERO, TOKEN.into(), true);
        let writer = state.peers.remote_of_token(TOKEN).unwrap().main;
        (state, writer)
    }

    fn sample(sequence: i64, bytes: usize) -> Arrival {
        Arrival::Sample {
            reader: GuidPrefix([7; 12]).with(EntityId::PARTICIPANT),
            attachment: Attachment {
                sequence,
                source_timestamp: 0,
                gid: Gid::of_token(TOKEN),
            },
            payload: vec![0; bytes].into(),
        }
    }

    #[test]
    fn tokens_between_samples_make_few_node_lists() {
        let (mut state, _) = state();
        let mut events = Vec::new();
        for number in 0..256 {
            let token = TOKEN.replacen("/0/1/", &format!("/0/{}/", number + 2), 1);
            state.take_discovery(&mut events);
            state.take_node_lists(false, &mut events);
            state.note_token(Instant::ZERO, token, true);
        }
        let lists = |events: &[TransportEvent]| {
            let is_list = |event: &&TransportEvent| matches!(event, TransportEvent::Nodes { .. });
            events.iter().filter(is_list).count()
        };
        assert_eq!(lists(&events), 256 / ARRIVALS_PER_POLL - 1);
        state.take_node_lists(true, &mut events);
        assert_eq!(lists(&events), 256 / ARRIVALS_PER_POLL);
    }

    /// The transport counts per reader: one reader may miss a sample that another one gets.
    #[test]
    fn a_loss_is_reported_to_the_reader_that_has_it() {
        let (mut state, writer) = state();
        let readers = [1, 2].map(|number| {
            let entity = EntityId::new([0, 0, number], EntityId::KIND_READER_NO_KEY);
            let guid = GuidPrefix([7; 12]).with(entity);
            let qos = EndpointQos {
                user_data: b"typehash=RIHS01_ab;".to_vec(),
                ..EndpointQos::default()
            };
            let ty = "std_msgs::msg::dds_::String_";
            let data = EndpointData::new(guid, "rt/chatter", ty, qos);
            state.peers.matcher_mut().add_local(&Arc::new(data));
            guid
        });
        state.take_discovery(&mut Vec::new());
        let mut events = Vec::new();
        for (sequence, to) in [
            (1, &readers[..]),
            (2, &readers[..1]),
            (3, &readers[..1]),
            (4, &readers[..]),
        ] {
            for of in to {
                let Arrival::Sample {
                    attachment,
                    payload,
                    ..
                } = sample(sequence, 8)
                else {
                    unreachable!()
                };
                let arrival = Arrival::Sample {
                    reader: *of,
                    attachment,
                    payload,
                };
                assert!(state.deliver(Instant::ZERO, writer, arrival, &mut events));
            }
        }
        let lost: Vec<_> = events
            .into_iter()
            .filter(|event| matches!(event, TransportEvent::SamplesLost { .. }))
            .collect();
        let expected = TransportEvent::SamplesLost {
            writer,
            reader: Some(readers[1]),
            count: 2,
        };
        assert_eq!(lost, [expected]);
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        state.take_discovery(&mut Vec::new());
        assert_eq!(state.last.len(), 2, "its last samples may follow");
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        state.take_discovery(&mut Vec::new());
        assert!(state.last.is_empty());
    }

    /// A state with both transports, and the token of a publisher of another such context.
    fn both() -> (State, GuidPrefix, String) {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let prefix = GuidPrefix([9; 12]);
        let session = SessionId::of_context(prefix).to_string();
        let token = TOKEN.replace("aac3178e146ba6f1fc6e6a4085e77f21", &session);
        let peers = Peers::new(own, 0, Limits::default(), RtpsReach::Network);
        (State::new(peers), prefix, token)
    }

    fn from(token: &str, sequence: i64) -> Arrival {
        let mut arrival = sample(sequence, 8);
        if let Arrival::Sample { attachment, .. } = &mut arrival {
            attachment.gid = Gid::of_token(token);
        }
        arrival
    }

    #[test]
    fn a_session_waits_for_rtps_only_while_its_data_has_space() {
        let (mut state, _, token) = both();
        let gid = Gid::of_token(&token);
        state.note_token(Instant::ZERO, token.clone(), true);
        let mut direct = 0;
        for sequence in 1..=300 {
            if state.peers.remote(gid).is_some() {
                direct += 1;
            } else {
                state.keep_early(Instant::ZERO, from(&token, sequence));
            }
        }
        assert_eq!(state.ready.len(), EARLY_MAX + 1);
        assert_eq!((direct, state.unannounced), (300 - EARLY_MAX - 1, 0));
        assert!(state.early.is_empty() && state.early_bytes == 0);
    }

    #[test]
    fn early_data_of_a_session_that_rtps_reaches_is_dropped_uncounted() {
        let (mut state, prefix, token) = both();
        state.note_token(Instant::ZERO, token.clone(), true);
        state.keep_early(Instant::ZERO, from(&token, 1));
        state.keep_early(Instant::ZERO, from(TOKEN, 1));
        state.note_rtps_participant(Instant::ZERO, prefix, true);
        assert_eq!((state.early.len(), state.early_bytes), (1, 8));
        assert!(state.ready.is_empty());
        assert_eq!(state.unannounced, 0);
    }

    #[test]
    fn samples_that_wait_for_space_are_lost_when_rtps_goes_on() {
        let (mut state, prefix, token) = both();
        state.note_token(Instant::ZERO, token.clone(), true);
        state.go_on_with_waiting(Instant::FAR_FUTURE);
        let writer = state.peers.remote_of_token(&token).unwrap().main;
        assert_eq!(writer.prefix, prefix);
        state.take_discovery(&mut Vec::new());
        state.hold(writer, true);
        for sequence in 1..=3 {
            assert!(!state.deliver(
                Instant::ZERO,
                writer,
                from(&token, sequence),
                &mut Vec::new()
            ));
        }
        state.note_rtps_participant(Instant::ZERO, prefix, true);
        let mut events = Vec::new();
        state.take_discovery(&mut events);
        let lost = TransportEvent::SamplesLost {
            writer,
            reader: Some(GuidPrefix([7; 12]).with(EntityId::PARTICIPANT)),
            count: 3,
        };
        assert_eq!(events.first(), Some(&lost), "before the match ends");
        assert!(matches!(
            events[1..],
            [
                TransportEvent::Discovery(ParticipantEvent::EndpointLost(_)),
                TransportEvent::Discovery(ParticipantEvent::ParticipantLost { .. })
            ]
        ));
        assert_eq!(state.held_bytes, 0);
        // The reader has space again.
        state.hold(writer, false);
        assert!(state.held.is_empty() && state.ready.is_empty());
    }

    #[test]
    fn a_transport_that_is_closed_lets_another_session_listen() {
        let kept = Arc::new(Mutex::new(None));
        let keeps = kept.clone();
        let open = OpenTransport::new(crate::NAME, move |setup| {
            let settings = ZenohSettings {
                router_check_attempts: Some(-1),
                ..ZenohSettings::default()
            };
            let opened = open_session(&settings, SessionId::of_context(setup.prefix))?;
            let transport = Arc::new(ZenohTransport::new(opened, setup)?);
            *keeps.lock() = Some(transport.clone());
            Ok(transport)
        });
        let context = Context::with_options(ContextOptions {
            domain_id: Some(94),
            discovery_range: Some(DiscoveryRange::Off),
            transports: vec![open],
            ..ContextOptions::default()
        });
        let is_claimed = || claim_rendezvous().is_none();
        assert!(is_claimed());
        drop(context.unwrap());
        assert!(kept.lock().is_some() && !is_claimed());
    }

    /// Handles released data. Returns the number of delivered samples.
    fn go_on(state: &mut State, writer: Guid) -> usize {
        let mut events = Vec::new();
        let mut delivered = 0;
        while let Some(arrival) = state.ready.pop_front() {
            match arrival {
                Arrival::Token { key, is_alive } => state.note_token(Instant::ZERO, key, is_alive),
                sample => {
                    delivered +=
                        usize::from(state.deliver(Instant::ZERO, writer, sample, &mut events))
                }
            }
        }
        delivered
    }

    #[test]
    fn a_held_writer_whose_token_comes_back_stays() {
        let (mut state, writer) = state();
        state.hold(writer, true);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        for _ in 0..100 {
            state.note_token(Instant::ZERO, TOKEN.into(), false);
            state.note_token(Instant::ZERO, TOKEN.into(), true);
        }
        state.hold(writer, false);
        assert_eq!(state.ready.len(), 2, "one token, whatever came");
        assert_eq!(go_on(&mut state, writer), 1);
        assert!(state.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn a_held_writer_whose_token_has_gone_goes_after_its_samples() {
        let (mut state, writer) = state();
        state.hold(writer, true);
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        assert!(state.peers.remote_of_token(TOKEN).is_some());
        state.hold(writer, false);
        assert_eq!(go_on(&mut state, writer), 1);
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        assert!(state.peers.remote_of_token(TOKEN).is_none());
    }

    /// Regression: its samples waited for a reader that filled up after the token was
    /// undeclared, and were dropped without a report.
    #[test]
    fn an_undeclared_writer_that_is_held_ends_after_its_samples() {
        let (mut state, writer) = state();
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        state.hold(writer, true);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        assert!(state.peers.remote_of_token(TOKEN).is_some());
        state.hold(writer, false);
        assert_eq!(go_on(&mut state, writer), 1);
        state.end_undeclared(Instant::FAR_FUTURE, Duration::ZERO);
        assert!(state.peers.remote_of_token(TOKEN).is_none());
    }

    /// Regression: early data of unknown publishers removed all undeclared ones.
    #[test]
    fn too_much_early_data_ends_no_undeclared_writer() {
        let (mut state, _) = state();
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        for number in 0..=EARLY_MAX {
            state.keep_early(Instant::ZERO, sample(number as i64, 8));
        }
        assert!(state.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn a_token_that_is_back_leaves_no_second_end_behind() {
        let (mut state, _) = state();
        for is_alive in [false, false, true] {
            state.note_token(Instant::ZERO, TOKEN.into(), is_alive);
        }
        state.end_undeclared(Instant::FAR_FUTURE, Duration::ZERO);
        assert!(state.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn held_data_has_a_limit_of_bytes() {
        let (mut state, writer) = state();
        state.hold(writer, true);
        let bytes = HELD_BYTES_MAX / 4;
        for sequence in 1..=9 {
            state.deliver(
                Instant::ZERO,
                writer,
                sample(sequence, bytes),
                &mut Vec::new(),
            );
        }
        assert_eq!(state.held_bytes, HELD_BYTES_MAX);
        state.hold(writer, false);
        assert_eq!(state.held_bytes, 0);
        assert_eq!(go_on(&mut state, writer), 4);
    }
}
