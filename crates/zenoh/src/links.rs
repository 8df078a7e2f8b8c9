//! Links: the Zenoh entities of a local endpoint, and its liveliness token.
//!
//! The token is declared after the entity and undeclared before it, as in rmw_zenoh_cpp.
//! So a peer that sees the token can use the endpoint. The declarer's thread declares
//! both, because that may block. Messages wait for the declaration. Arrivals are put into
//! the inbox.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::query::{ConsolidationMode, Querier, Query, QueryTarget, Queryable};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};
use zenoh_ext::{AdvancedPublisher, AdvancedPublisherBuilderExt, CacheConfig, MissDetectionConfig};

use crate::attachment::{Attachment, NAMED_BYTES};
use crate::declarer::{Declarer, failure};
use crate::gid::Gid;
use crate::history_order::HISTORY_MAX;
use crate::inbox::{Arrival, Inbox};
use crate::key::{Place, RESULT_SERVICE_END, Role};
use crate::ordered_history::{HistorySpec, OrderedHistory, SharedFilter};
use crate::readiness::{Readiness, WAIT_MAX, after_declarations, after_history};
use crate::session_id::SessionId;

/// Heartbeat period of a reliable transient-local publisher, as in rmw_zenoh_cpp.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Samples that a KEEP_ALL publisher keeps for late joiners, unless resource limits are
/// set.
const KEEP_ALL_SAMPLES: usize = 1_000;
/// Timeout for the result of an action's goal: in effect unlimited, and small enough to
/// add to any clock.
const RESULT_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Messages of an endpoint that wait for its declaration. When full, the oldest is
/// dropped and counted.
const OUTGOING_MAX: usize = 1_000;
/// Bytes of these messages. The newest one is kept whatever its size.
const OUTGOING_BYTES_MAX: usize = 16 << 20;

/// Size of the encapsulation header.
const HEADER_BYTES: usize = 4;

/// A message to send.
pub struct Outgoing {
    /// Sequence number, source timestamp and gid.
    pub attachment: Attachment,
    /// The serialized message.
    pub payload: Bytes,
    /// For a reply, the query that it answers.
    pub query: Option<Query>,
}

/// The Zenoh entities of one endpoint. Thread-safe.
pub struct Link {
    /// Set by [`Link::declare`].
    declared: OnceLock<Declared>,
    readiness: Readiness,
    data: Arc<EndpointData>,
    place: Place,
    key: Arc<str>,
    token: String,
    filter: SharedFilter,
    /// The gid in its attachments.
    pub gid: Gid,
    outgoing: Mutex<Outbox>,
    /// Largest accepted sample, request or reply.
    sample_bytes_max: usize,
    /// Held while sending, so that samples leave in the order of their numbers.
    sending: Mutex<()>,
}

struct Declared {
    // Dropped, and so undeclared, in this order.
    token: OnceLock<LivelinessToken>,
    entity: Entity,
}

enum Entity {
    Publisher(Publisher<'static>),
    CachingPublisher(Box<AdvancedPublisher<'static>>),
    Subscriber(#[allow(dead_code, reason = "declared until dropped")] Subscriber<()>),
    HistorySubscriber(#[allow(dead_code, reason = "declared until dropped")] Box<OrderedHistory>),
    Server(#[allow(dead_code, reason = "declared until dropped")] Queryable<()>),
    Client(Querier<'static>),
}

/// Parameters of a link.
pub struct LinkSpec {
    pub data: Arc<EndpointData>,
    /// Name, type and role. `Role::Replies` has no entities and no link.
    pub place: Place,
    pub key: String,
    /// Key of its liveliness token.
    pub token: String,
    /// Largest accepted sample, bytes.
    pub sample_bytes_max: usize,
    /// The content filter of a subscription.
    pub filter: Option<Arc<ContentFilter>>,
}

impl Link {
    /// Creates a link without declaring it.
    ///
    /// # Errors
    /// Zenoh's, as text: an invalid key expression.
    pub fn new(spec: LinkSpec) -> Result<Self, String> {
        for key in [&spec.key, &spec.token] {
            KeyExpr::new(key.as_str()).map_err(|error| error.to_string())?;
        }
        Ok(Self {
            declared: OnceLock::new(),
            readiness: Readiness::default(),
            gid: Gid::of_token(&spec.token),
            data: spec.data,
            place: spec.place,
            key: spec.key.into(),
            token: spec.token,
            filter: Arc::new(Mutex::new(spec.filter)),
            outgoing: Mutex::default(),
            sample_bytes_max: spec.sample_bytes_max,
            sending: Mutex::default(),
        })
    }

    /// Declares the endpoint and its token, and sends the queued messages. Called once,
    /// on the declarer's thread. Blocks while Zenoh's transmission queue is full.
    ///
    /// # Errors
    /// Zenoh's, as text. Publishers no longer wait for the declaration then.
    pub fn declare(
        self: &Arc<Self>,
        session: &Session,
        inbox: &Arc<Inbox>,
        declarer: &Arc<Declarer>,
    ) -> Result<(), String> {
        let declared = self.declare_both(session, inbox, declarer);
        if declared.is_err() {
            self.readiness.set();
        }
        declared
    }

    fn declare_both(
        self: &Arc<Self>,
        session: &Session,
        inbox: &Arc<Inbox>,
        declarer: &Arc<Declarer>,
    ) -> Result<(), String> {
        self.declare_entity(session, inbox, declarer)?;
        let link = Arc::downgrade(self);
        if self.wants_whole_history() {
            let of_job = session.clone();
            after_history(session, &self.key, declarer, move || {
                if let Some(link) = link.upgrade()
                    && let Some(error) = failure(&of_job, link.declare_token(&of_job))
                {
                    tracing::warn!("announce \"{}\" on Zenoh: {error}", link.key);
                }
            });
            return Ok(());
        }
        self.declare_token(session)?;
        if !self.keeps_samples() {
            self.begin(inbox);
            return Ok(());
        }
        let inbox = inbox.clone();
        // A key without a token, in the space where the session may query tokens.
        let key = format!("{}/_", self.token);
        after_declarations(session, key, declarer, move || {
            if let Some(link) = link.upgrade() {
                link.begin(&inbox);
            }
        });
        Ok(())
    }

    fn declare_entity(
        &self,
        session: &Session,
        inbox: &Arc<Inbox>,
        declarer: &Arc<Declarer>,
    ) -> Result<(), String> {
        let receiver = Receiver {
            inbox: inbox.clone(),
            endpoint: self.data.guid,
            sample_bytes_max: self.sample_bytes_max,
        };
        let qos = &self.data.qos;
        let keeps = qos.durability != Durability::Volatile;
        let key = self.key.to_string();
        let entity = match self.place.role {
            Role::Publisher if keeps => caching_publisher(session, key, qos),
            Role::Publisher => publisher(session, key, qos, &receiver),
            Role::Subscription if keeps => {
                history_subscriber((session, declarer), key, qos, self.filter.clone(), receiver)
            }
            Role::Subscription => subscriber(session, key, receiver),
            Role::Server => server(session, key, receiver),
            Role::Client => client(session, key, &self.place.name),
            Role::Replies => return Err("replies have no link".into()),
        };
        let declared = Declared {
            token: OnceLock::new(),
            entity: entity.map_err(|error| error.to_string())?,
        };
        let is_first = self.declared.set(declared).is_ok();
        is_first
            .then_some(())
            .ok_or_else(|| "it is declared already".into())
    }

    fn declare_token(&self, session: &Session) -> Result<(), String> {
        let Some(declared) = self.declared.get() else {
            return Ok(());
        };
        let token = session.liveliness().declare_token(self.token.clone());
        let token = token.wait().map_err(|error| error.to_string())?;
        let is_first = declared.token.set(token).is_ok();
        is_first
            .then_some(())
            .ok_or_else(|| "it has a token already".into())
    }

    /// Sends the queued messages, and later messages at once.
    fn begin(&self, inbox: &Arc<Inbox>) {
        self.readiness.set();
        self.flush(inbox);
    }

    /// Waits until a transient-local publisher may send, at most 2 s.
    pub fn await_readiness(&self) {
        if self.keeps_samples() {
            self.readiness.wait(WAIT_MAX);
        }
    }

    /// Whether the subscription needs the whole history. Its token is then declared after
    /// the history query has ended. A publisher that saw the token earlier could replace
    /// samples that no subscription has received.
    fn wants_whole_history(&self) -> bool {
        let qos = &self.data.qos;
        self.place.role == Role::Subscription
            && qos.durability != Durability::Volatile
            && qos.history == History::KeepAll
    }

    /// Whether the transport keeps samples of this endpoint for late joiners.
    pub fn keeps_samples(&self) -> bool {
        self.place.role == Role::Publisher && self.data.qos.durability != Durability::Volatile
    }

    /// Replaces the content filter of a subscription.
    pub fn set_filter(&self, filter: Option<Arc<ContentFilter>>) {
        *self.filter.lock() = filter;
    }

    /// The key of its messages.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// GUID of the endpoint.
    pub fn endpoint(&self) -> Guid {
        self.data.guid
    }

    /// Queues a message. Never blocks. Returns the number of older messages dropped,
    /// because too many wait for the declaration.
    pub fn queue(&self, message: Outgoing) -> u64 {
        let mut outgoing = self.outgoing.lock();
        outgoing.push(message);
        if self.readiness.is_ready() {
            return 0;
        }
        outgoing.drop_oldest()
    }

    /// Sends the queued messages in order. Does nothing before the endpoint may send.
    /// Blocks while another thread sends. While Zenoh's transmission queue is full,
    /// requests, replies and samples of a reliable KEEP_ALL publisher block; other
    /// samples are dropped after milliseconds.
    pub fn flush(&self, inbox: &Arc<Inbox>) {
        let is_ready = self.readiness.is_ready();
        let Some(declared) = self.declared.get().filter(|_| is_ready) else {
            return;
        };
        if self.outgoing.lock().messages.is_empty() {
            return;
        }
        let _sending = self.sending.lock();
        loop {
            let next = self.outgoing.lock().pop();
            let Some(message) = next else { return };
            if let Err(error) = self.send(&declared.entity, inbox, message) {
                tracing::debug!("send on {}: {error}", self.key);
            }
        }
    }

    fn send(&self, entity: &Entity, inbox: &Arc<Inbox>, message: Outgoing) -> zenoh::Result<()> {
        let endpoint = self.data.guid;
        let attachment = ZBytes::from(message.attachment.to_bytes());
        let payload = unpadded(&message.payload);
        match entity {
            Entity::Publisher(publisher) => publisher.put(payload).attachment(attachment).wait(),
            Entity::CachingPublisher(publisher) => {
                publisher.put(payload).attachment(attachment).wait()
            }
            Entity::Server(_) => match message.query {
                Some(query) => query
                    .reply(&*self.key, payload)
                    .attachment(attachment)
                    .wait(),
                None => Ok(()),
            },
            Entity::Client(querier) => {
                let (inbox, service) = (inbox.clone(), self.key.clone());
                let sequence = message.attachment.sequence;
                let bytes_max = self.sample_bytes_max;
                let get = querier.get().payload(payload).attachment(attachment);
                get.callback(move |reply| {
                    let replier = reply.replier_id();
                    let replier =
                        replier.map(|id| SessionId::from_le_bytes(id.zid().to_le_bytes()));
                    // An error reply means that no server replies: the client keeps
                    // waiting.
                    let Ok(sample) = reply.result() else { return };
                    let parts = parts(sample.attachment(), sample.payload(), bytes_max);
                    let Some((attachment, payload)) = parts else {
                        return inbox.note_malformed();
                    };
                    inbox.push(Arrival::Reply {
                        client: endpoint,
                        sequence,
                        replier,
                        service: service.clone(),
                        source_timestamp: attachment.source_timestamp,
                        payload,
                    });
                })
                .wait()
            }
            Entity::Subscriber(_) | Entity::HistorySubscriber(_) => Ok(()),
        }
    }
}

/// Messages to send.
#[derive(Default)]
struct Outbox {
    messages: VecDeque<Outgoing>,
    bytes: usize,
}

impl Outbox {
    fn push(&mut self, message: Outgoing) {
        self.bytes = self.bytes.saturating_add(message.payload.len());
        self.messages.push_back(message);
    }

    fn pop(&mut self) -> Option<Outgoing> {
        let message = self.messages.pop_front()?;
        self.bytes = self.bytes.saturating_sub(message.payload.len());
        Some(message)
    }

    fn drop_oldest(&mut self) -> u64 {
        let mut dropped = 0;
        while self.messages.len() > OUTGOING_MAX
            || (self.bytes > OUTGOING_BYTES_MAX && self.messages.len() > 1)
        {
            self.pop();
            dropped += 1;
        }
        dropped
    }
}

/// Puts the arrivals for one endpoint into the inbox.
#[derive(Clone)]
struct Receiver {
    inbox: Arc<Inbox>,
    endpoint: Guid,
    sample_bytes_max: usize,
}

impl Receiver {
    fn receive_sample(&self, sample: &Sample) {
        let is_put = sample.kind() == SampleKind::Put;
        let read = || {
            let bytes_max = self.sample_bytes_max;
            parts(sample.attachment(), sample.payload(), bytes_max)
        };
        match is_put.then(read).flatten() {
            Some((attachment, payload)) => self.inbox.push(Arrival::Sample {
                reader: self.endpoint,
                attachment,
                payload,
            }),
            None => self.inbox.note_malformed(),
        }
    }

    fn receive_request(&self, query: Query) {
        let read = |payload| parts(query.attachment(), payload, self.sample_bytes_max);
        match query.payload().and_then(read) {
            Some((attachment, payload)) => self.inbox.push(Arrival::Request {
                server: self.endpoint,
                attachment,
                payload,
                query,
            }),
            None => self.inbox.note_malformed(),
        }
    }
}

/// A payload as rmw_zenoh_cpp writes it: without RTPS padding. The lowest bits of the
/// encapsulation options give the padding's length (RTPS 2.5 §10.5).
fn unpadded(payload: &Bytes) -> ZBytes {
    let padding = payload.get(3).map_or(0, |options| usize::from(options & 3));
    let header = payload.get(..2).filter(|_| padding > 0);
    let (Some([first, second]), Some(end)) = (header, payload.len().checked_sub(padding)) else {
        return payload.clone().into();
    };
    let mut writer = ZBytes::writer();
    writer.append([*first, *second, 0, 0].into());
    writer.append(payload.slice(4..end.max(4)).into());
    writer.finish()
}

/// Attachment and payload. `None` if the attachment is invalid, the encapsulation header
/// is missing, or the payload is too long. Both are copied only after their length is
/// checked.
fn parts(
    attachment: Option<&ZBytes>,
    payload: &ZBytes,
    payload_bytes_max: usize,
) -> Option<(Attachment, Bytes)> {
    let attachment = attachment.filter(|attachment| attachment.len() <= NAMED_BYTES)?;
    if !(HEADER_BYTES..=payload_bytes_max).contains(&payload.len()) {
        return None;
    }
    let attachment = Attachment::parse(&attachment.to_bytes())?;
    let payload = match payload.to_bytes() {
        std::borrow::Cow::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    Some((attachment, payload))
}

fn congestion_control(qos: &EndpointQos) -> CongestionControl {
    // As in rmw_zenoh_cpp, only a KEEP_ALL publisher waits for slow readers.
    if qos.reliability == Reliability::Reliable && qos.history == History::KeepAll {
        CongestionControl::Block
    } else {
        CongestionControl::Drop
    }
}

fn reliability(qos: &EndpointQos) -> zenoh::qos::Reliability {
    if qos.reliability == Reliability::Reliable {
        zenoh::qos::Reliability::Reliable
    } else {
        zenoh::qos::Reliability::BestEffort
    }
}

/// Samples that a subscription requests of a publisher's history. KEEP_ALL requests all:
/// its resource limits bound only the samples not yet taken.
fn wanted_depth(qos: &EndpointQos) -> usize {
    match qos.history {
        History::KeepLast(_) => depth(qos),
        History::KeepAll => HISTORY_MAX,
    }
}

/// Samples kept for late joiners.
fn depth(qos: &EndpointQos) -> usize {
    let kept = match qos.history {
        History::KeepLast(depth) => Some(depth),
        History::KeepAll => qos.resource_limits.max_samples,
    };
    let kept = kept.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
    kept.unwrap_or(KEEP_ALL_SAMPLES).max(1)
}

fn publisher(
    session: &Session,
    key: String,
    qos: &EndpointQos,
    receiver: &Receiver,
) -> zenoh::Result<Entity> {
    let publisher = session
        .declare_publisher(key)
        .congestion_control(congestion_control(qos))
        .reliability(reliability(qos))
        .allowed_destination(Locality::Remote)
        .wait()?;
    let (inbox, writer) = (receiver.inbox.clone(), receiver.endpoint);
    publisher
        .matching_listener()
        .callback(move |status| {
            inbox.note_matching(writer, status.matching());
        })
        .background()
        .wait()?;
    Ok(Entity::Publisher(publisher))
}

fn caching_publisher(session: &Session, key: String, qos: &EndpointQos) -> zenoh::Result<Entity> {
    let advanced = session
        .declare_publisher(key)
        .congestion_control(congestion_control(qos))
        .reliability(reliability(qos))
        .allowed_destination(Locality::Remote)
        .cache(CacheConfig::default().max_samples(depth(qos)))
        .publisher_detection();
    let advanced = if qos.reliability == Reliability::Reliable {
        let heartbeat = MissDetectionConfig::default().sporadic_heartbeat(HEARTBEAT);
        advanced.sample_miss_detection(heartbeat)
    } else {
        advanced
    };
    Ok(Entity::CachingPublisher(Box::new(advanced.wait()?)))
}

fn subscriber(session: &Session, key: String, receiver: Receiver) -> zenoh::Result<Entity> {
    let subscriber = session
        .declare_subscriber(key)
        .allowed_origin(Locality::Remote)
        .callback(move |sample| receiver.receive_sample(&sample))
        .wait()?;
    Ok(Entity::Subscriber(subscriber))
}

fn history_subscriber(
    (session, declarer): (&Session, &Arc<Declarer>),
    key: String,
    qos: &EndpointQos,
    filter: SharedFilter,
    receiver: Receiver,
) -> zenoh::Result<Entity> {
    let spec = HistorySpec {
        key: KeyExpr::try_from(key)?,
        depth: wanted_depth(qos),
        is_reliable: qos.reliability == Reliability::Reliable,
        filter,
    };
    let deliver = move |sample: &Sample| receiver.receive_sample(sample);
    let declared = OrderedHistory::declare(session, declarer, spec, deliver)?;
    Ok(Entity::HistorySubscriber(Box::new(declared)))
}

fn server(session: &Session, key: String, receiver: Receiver) -> zenoh::Result<Entity> {
    let queryable = session
        .declare_queryable(key)
        .complete(true)
        .allowed_origin(Locality::Remote)
        .callback(move |query| receiver.receive_request(query))
        .wait()?;
    Ok(Entity::Server(queryable))
}

fn client(session: &Session, key: String, service: &str) -> zenoh::Result<Entity> {
    let querier = session
        .declare_querier(key)
        .target(QueryTarget::AllComplete)
        .consolidation(ConsolidationMode::None)
        .allowed_destination(Locality::Remote);
    let querier = if service.ends_with(RESULT_SERVICE_END) {
        querier.timeout(RESULT_TIMEOUT)
    } else {
        querier
    };
    Ok(Entity::Client(querier.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_leaves_without_the_padding_of_rtps() {
        let sent = |payload: &[u8]| {
            unpadded(&Bytes::copy_from_slice(payload))
                .to_bytes()
                .into_owned()
        };
        assert_eq!(sent(&[0, 1, 0, 2, 7, 8, 0, 0]), [0, 1, 0, 0, 7, 8]);
        assert_eq!(sent(&[0, 1, 0, 0, 7, 8, 9, 0]), [0, 1, 0, 0, 7, 8, 9, 0]);
        assert_eq!(sent(&[0, 1, 0, 3]), [0, 1, 0, 0], "a length that is a lie");
        assert_eq!(sent(&[0, 1]), [0, 1]);
    }

    #[test]
    fn messages_that_wait_for_the_declaration_have_limits() {
        let message = |bytes: usize| Outgoing {
            attachment: Attachment {
                sequence: 1,
                source_timestamp: 2,
                gid: Gid([3; 16]),
            },
            payload: vec![0; bytes].into(),
            query: None,
        };
        let mut outbox = Outbox::default();
        let mut dropped = 0;
        for _ in 0..2 * OUTGOING_MAX {
            outbox.push(message(8));
            dropped += outbox.drop_oldest();
        }
        assert_eq!(dropped, 1_000);
        assert_eq!((outbox.messages.len(), outbox.bytes), (OUTGOING_MAX, 8_000));
        outbox.push(message(OUTGOING_BYTES_MAX + 1));
        assert_eq!(outbox.drop_oldest(), 1_000);
        assert_eq!(outbox.bytes, OUTGOING_BYTES_MAX + 1);
        assert!(outbox.pop().is_some() && outbox.pop().is_none());
        assert_eq!(outbox.bytes, 0);
    }

    #[test]
    fn what_is_too_long_or_too_short_is_not_read() {
        let attachment = Attachment {
            sequence: 1,
            source_timestamp: 2,
            gid: Gid([3; 16]),
        };
        let bytes = attachment.to_bytes().to_vec();
        let read = |attachment: &[u8], payload: usize| {
            let attachment = ZBytes::from(attachment.to_vec());
            parts(Some(&attachment), &ZBytes::from(vec![0; payload]), 100)
        };
        assert_eq!(read(&bytes, 100), Some((attachment, vec![0; 100].into())));
        assert!(read(&bytes, 4).is_some());
        assert!(read(&bytes, 101).is_none() && read(&bytes, 3).is_none());
        assert!(read(&[0; NAMED_BYTES + 1], 100).is_none());
        assert!(parts(None, &ZBytes::from(vec![0; 8]), 100).is_none());
    }
}
