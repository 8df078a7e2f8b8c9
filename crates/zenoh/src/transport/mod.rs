//! The Zenoh transport: implements the runtime's transport trait on one Zenoh session.
//!
//! Liveliness tokens provide discovery ([`crate::peers`]), the inbox provides samples,
//! requests and replies. Gaps of sequence numbers show losses.
//!
//! `state` is what the lock protects: `discovery` of remote endpoints, `reception` of their
//! data (`early` data waits for a token, `held` data for a KEEP_ALL reader), and
//! `publishing` to readers and clients.

mod discovery;
mod early;
mod held;
mod publishing;
mod reception;
mod state;

use std::borrow::Cow;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_msg::hash::TypeHash;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, Carrier, ChangeKind};
use pteros_rtps::id::{Guid, GuidPrefix};
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

use self::reception::{received, sample};
use self::state::State;
use crate::attachment::Attachment;
use crate::certificate_watch::CertificateWatch;
use crate::declarer::Declarer;
use crate::inbox::{Arrival, Inbox};
use crate::links::{Link, Outgoing};
use crate::local::Local;
use crate::peers::Peers;
use crate::requests::OpenRequest;
use crate::session::OpenedSession;
use crate::session_id::SessionId;
use crate::token::Token;
use crate::undeclared_publishers::UNDECLARED_WAIT_BUSY;
use crate::unsupported::not_on_zenoh;

/// Arrivals per poll. Node lists are rebuilt at most once per this number, because a list
/// is as long as its session has endpoints.
const ARRIVALS_PER_POLL: usize = 64;
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
        state.discovery.peers.matcher_mut().add_local(matched);
        self.schedule(&state);
    }

    fn schedule(&self, state: &State) {
        self.inbox.schedule(state.next_poll());
    }

    fn update_wanted(&self, state: &mut State) {
        let matching = self.inbox.take_matching();
        state.publishing.note_matching(matching);
        if state.publishing.are_readers_stale() {
            let local = self.local.lock();
            state.publishing.update(&local, &state.discovery.peers);
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
                let (peers, gid) = (&state.discovery.peers, attachment.gid);
                match peers.remote(gid) {
                    Some(remote) => state.deliver(now, remote.main, arrival, events),
                    None if self.local.lock().is_own(gid) => false,
                    None if peers.is_on_rtps(gid) => false,
                    None => state.keep_early(now, arrival),
                }
            }
            Arrival::Request { attachment, .. } => {
                let (peers, gid) = (&state.discovery.peers, attachment.gid);
                match peers.remote(gid) {
                    Some(remote) => match remote.replies {
                        Some(replies) => {
                            self.deliver_request(state, remote.main, replies, arrival, events)
                        }
                        None => state.reception.refuse(),
                    },
                    // A client's call ends with an error if RTPS now reaches its server.
                    None if peers.is_on_rtps(gid) => false,
                    None => state.keep_early(now, arrival),
                }
            }
            Arrival::Reply { .. } => {
                let peers = &state.discovery.peers;
                state.reception.deliver_reply(peers, arrival, events)
            }
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
        let closed = state.publishing.requests.push(OpenRequest {
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
            .publishing
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
        state.discovery.peers.matcher_mut().remove_local(endpoint);
        state.publishing.remove_local(endpoint);
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
            let next = || {
                state
                    .reception
                    .ready
                    .pop_front()
                    .or_else(|| self.inbox.pop())
            };
            let next = (handled < ARRIVALS_PER_POLL).then(next).flatten();
            state.discovery.take_node_lists(next.is_none(), events);
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
        state.reception.drop_expired(now);
        self.schedule(&state);
    }

    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        let state = self.state.lock();
        state
            .discovery
            .peers
            .matcher()
            .remotes()
            .for_each(|known| see(known));
    }

    fn with_endpoint(&self, guid: Guid, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) -> bool {
        let state = self.state.lock();
        let known = state.discovery.peers.matcher().remote(guid);
        if let Some(known) = known {
            see(known);
        }
        known.is_some()
    }

    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        self.state.lock().discovery.peers.matcher().exceeded_limit()
    }

    fn close(&self, _now: Instant) {
        self.declarer.close();
        drop(self.watch.lock().take());
        self.state.lock().publishing.requests.clear();
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
            self.state.lock().publishing.want(endpoint);
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
                state.discovery.peers.refused_count() + self.inbox.refused_token_count(),
            ),
            // Data without a valid attachment or payload, or above the size limit.
            ("malformed", self.inbox.malformed_count()),
            // Data that the receiving threads polled too late.
            ("dropped", self.inbox.dropped_count()),
            // Data whose sender no token announces.
            ("unannounced", state.reception.unannounced_count()),
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
        state.reception.hold(writer, holds);
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
    use pteros_runtime::transport::OpenTransport;

    use super::*;
    use crate::session::{claim_rendezvous, open_session};

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
}
