//! Service client: sends requests and correlates replies (service correlation by
//! request id).

use std::any::TypeId;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use pteros_dcps::correlation::{
    CorrelationStyle, RequestHeader, decode_request_header, reply_reader_identity,
};
use pteros_rtps::id::Guid;
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::Timestamp;
use thiserror::Error;

use super::{CLIENT_ID, SERVICE_ID, ServiceSpec};
use crate::core::Core;
use crate::endpoints::reader::{DeliveryForm, ReaderEndpoint};
use crate::endpoints::writer::WriterEndpoint;
use crate::error::{EndpointError, PublishError};
use crate::lock::{Mutex, rank};
use crate::outbound::OutboundMessage;
use crate::sample::{QueuedSample, SharedValue};
use crate::shm_transport::Chunk;

/// Open calls per client; more are refused.
pub const CALLS_MAX: usize = 1_000;

/// One call of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CallId(u64);

impl CallId {
    /// The client's number of the call, from 1.
    ///
    /// It equals the request's sequence number while every call is sent once. With
    /// servers of both correlation styles, a call is sent twice.
    pub fn number(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

/// A reply to an open call, which is closed.
pub struct ReceivedReply<T> {
    /// The answered call.
    pub call: CallId,
    /// The decoded message. If no server can reply any more, the reason why the last
    /// reply did not decode.
    pub message: T,
}

/// Why a request was not sent.
#[derive(Error)]
pub enum SendRequestError {
    /// No server is matched.
    #[error("no server is available")]
    NoServer,
    /// Too many calls wait for their replies.
    #[error("{max} calls wait for a reply, the limit; give up some of them first")]
    TooManyCalls {
        /// The limit.
        max: usize,
    },
    /// The request could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

pteros_msg::debug_as_display!(SendRequestError);

/// A client's endpoints and its open calls. Thread-safe.
pub struct ServiceClient {
    /// Writes requests.
    pub requests: Arc<WriterEndpoint>,
    /// Gets replies.
    pub replies: Arc<ReaderEndpoint>,
    /// Its number in request headers.
    client_number: u64,
    calls: Mutex<CallTable, rank::OpenCalls>,
    unmatched_replies: AtomicU64,
    /// The log line about a server of an unknown dialect was written.
    is_dialect_told: AtomicBool,
}

#[derive(Default)]
struct CallTable {
    last: u64,
    open: BTreeMap<CallId, OpenCall>,
    /// Number of ended matches when removed servers were last checked.
    ended_matches: u64,
    by_sent_request: BTreeMap<SentRequest, CallId>,
}

struct OpenCall {
    sent: Vec<SentRequest>,
    /// The servers that may reply.
    servers: Vec<Guid>,
}

/// A request as servers of one correlation style identify it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SentRequest {
    style: CorrelationStyle,
    sequence: i64,
}

impl Core {
    /// Creates a client: a writer and a reader that belong together.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_service_client(
        &self,
        mut spec: ServiceSpec,
        wants: DeliveryForm,
    ) -> Result<ServiceClient, EndpointError> {
        spec.set_pair_id(CLIENT_ID, &self.new_pair_id());
        // The reply path first, so that a server that knows the request writer knows it
        // as well.
        let replies = self.create_reader(spec.replies, wants, false)?;
        let requests = match self.create_writer(spec.requests) {
            Ok(requests) => requests,
            Err(error) => {
                self.remove_reader(&replies);
                return Err(error);
            }
        };
        for endpoint in [requests.guid(), replies.data.guid] {
            self.discovery()
                .transports
                .note_service_hash(endpoint, spec.type_hash);
        }
        Ok(ServiceClient {
            client_number: client_number_of(replies.data.guid),
            requests,
            replies,
            calls: Mutex::default(),
            unmatched_replies: AtomicU64::new(0),
            is_dialect_told: AtomicBool::new(false),
        })
    }

    /// Removes a client's endpoints and informs its servers.
    pub fn remove_service_client(&self, client: &ServiceClient) {
        self.remove_writer(&client.requests);
        self.remove_reader(&client.replies);
    }
}

impl ServiceClient {
    /// Number of servers matched on both topics. Never blocks.
    pub fn server_count(&self, core: &Core) -> usize {
        let repliers = self.replies.matched();
        let listeners = self.requests.matched();
        let is_complete = |listener: &&Guid| {
            let mut repliers = repliers.iter();
            repliers.any(|replier| {
                core.discovery()
                    .graph
                    .are_pair(SERVICE_ID, **listener, *replier)
            })
        };
        listeners.iter().filter(is_complete).count()
    }

    /// Consumes the number of a request without sending it, for users to whom the request
    /// is lost. So the numbers of later calls still equal those of their requests on the
    /// transport.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn send_to_nobody(
        &self,
        core: &Core,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<CallId, PublishError> {
        let mut calls = self.calls.lock();
        let mut request = DirectedMessage {
            message,
            header: None,
            related: None,
            // Not a reader of this topic.
            only_for: Some(self.replies.data.guid),
        };
        core.publish(&self.requests, &mut request, source)?;
        calls.last += 1;
        Ok(CallId(calls.last))
    }

    /// Sends a request to every matched server, in its correlation style. The first reply
    /// counts.
    ///
    /// Blocks as [`Core::publish`] does.
    ///
    /// # Errors
    /// See [`SendRequestError`]; no call is open then.
    pub fn send(
        &self,
        core: &Core,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<CallId, SendRequestError> {
        if self.server_count(core) == 0 {
            return Err(SendRequestError::NoServer);
        }
        let servers = self.requests.matched();
        self.tell_dialect(core, &servers, "may not answer");
        let is_headed = |server: &Guid| {
            core.discovery().graph.correlation_style_of(server.prefix)
                == CorrelationStyle::PayloadHeader
        };
        // One request for all, unless some servers would misread it.
        let addressees: Vec<_> = if servers.iter().any(is_headed) {
            servers.iter().copied().map(Some).collect()
        } else {
            vec![None]
        };
        // Held while publishing: a reply may arrive before this returns.
        let mut calls = self.calls.lock();
        self.forget_moved_servers(&mut calls);
        if calls.open.len() >= CALLS_MAX {
            return Err(SendRequestError::TooManyCalls { max: CALLS_MAX });
        }
        calls.last += 1;
        let call = CallId(calls.last);
        let mut sent = Vec::new();
        let mut failed = None;
        for only_for in addressees {
            let header = only_for.filter(is_headed).map(|_| RequestHeader {
                client: self.client_number,
                sequence: i64::try_from(call.0).unwrap_or(i64::MAX),
            });
            let mut request = DirectedMessage {
                message,
                header,
                related: Some(reply_reader_identity(self.replies.data.guid)),
                only_for,
            };
            match (core.publish(&self.requests, &mut request, source), header) {
                (Ok(_), Some(header)) => sent.push(SentRequest {
                    style: CorrelationStyle::PayloadHeader,
                    sequence: header.sequence,
                }),
                (Ok(sequence), None) => sent.push(SentRequest {
                    style: CorrelationStyle::InlineQos,
                    sequence,
                }),
                (Err(error), _) => failed = Some(error),
            }
        }
        // A server that received it may reply.
        if let Some(error) = failed.filter(|_| sent.is_empty()) {
            calls.last -= 1;
            return Err(error.into());
        }
        for request in &sent {
            calls.by_sent_request.insert(*request, call);
        }
        let asked = servers;
        calls.open.insert(
            call,
            OpenCall {
                sent,
                servers: asked,
            },
        );
        Ok(call)
    }

    /// Takes the oldest reply to an open call; later replies to the same call are
    /// skipped. Never blocks.
    ///
    /// A trace contains it once its receiver has noted it
    /// ([`crate::trace::Tracer::note_taken`]).
    pub fn take_reply(&self, core: &Core) -> Option<ReceivedReply<QueuedSample>> {
        let ReceivedReply { call, message } = self.take_decoded_reply(core, Ok)?;
        let Ok(message): Result<_, Infallible> = message;
        Some(ReceivedReply { call, message })
    }

    /// As [`ServiceClient::take_reply`], with a decoder, which runs under no lock.
    ///
    /// A refused reply is dropped ([`TakePath::note_undecodable`](crate::TakePath::note_undecodable)), and the call remains open
    /// for the other servers that received the request. Without another one it is closed,
    /// and the reason is returned.
    pub fn take_decoded_reply<T, E: Display>(
        &self,
        core: &Core,
        mut decode: impl FnMut(QueuedSample) -> Result<T, E>,
    ) -> Option<ReceivedReply<Result<T, E>>> {
        while let Some(mut item) = core.discovery().taking.take_untraced(&self.replies) {
            let server = item.meta.publisher;
            let style = core
                .discovery()
                .graph
                .correlation_style_of(item.meta.publisher.prefix);
            let sequence = match decode_request_header(style, &mut item) {
                Some(Some(header)) if header.client == self.client_number => header.sequence,
                Some(None) => match item.related() {
                    Some(related) if self.is_ours(related.writer) => related.sequence.0,
                    // Replies to other clients, which some servers send to all.
                    Some(_) => continue,
                    None => {
                        let what = "sends replies without the id of their request";
                        self.tell_dialect(core, &[server], what);
                        continue;
                    }
                },
                Some(Some(_)) => continue,
                None => {
                    let reason = "it is too short for the header that replies of this vendor have";
                    core.discovery()
                        .taking
                        .note_undecodable(&self.replies, server, &reason);
                    continue;
                }
            };
            let request = SentRequest { style, sequence };
            if !self.calls.lock().is_open(&request) {
                self.unmatched_replies.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let message = decode(item);
            if let Err(reason) = &message {
                core.discovery()
                    .taking
                    .note_undecodable(&self.replies, server, reason);
                if self.may_others_reply(core, &request, server) {
                    continue;
                }
            }
            // Another thread may have taken another reply meanwhile.
            match self.calls.lock().close(&request) {
                Some(call) => return Some(ReceivedReply { call, message }),
                None => self.unmatched_replies.fetch_add(1, Ordering::Relaxed),
            };
        }
        None
    }

    /// Whether servers other than this one received a request. This one will not reply
    /// again.
    fn may_others_reply(&self, core: &Core, request: &SentRequest, server: Guid) -> bool {
        let mut calls = self.calls.lock();
        let Some(open) = calls.find(request) else {
            return false;
        };
        open.servers
            .retain(|asked| !core.discovery().graph.are_pair(SERVICE_ID, *asked, server));
        !open.servers.is_empty()
    }

    /// Why a matched server may never answer, although it is there: its stack may relate
    /// replies to requests in another way. `None` if all of them do as this client.
    pub fn unanswered_reason(&self, core: &Core) -> Option<String> {
        first_mismatch(core, &self.requests.matched()).map(|(_, reason)| reason)
    }

    /// Names a server that may not understand this client, once, so that the reason is
    /// known if it never answers.
    fn tell_dialect(&self, core: &Core, servers: &[Guid], what: &str) {
        if !self.is_dialect_told.load(Ordering::Relaxed)
            && let Some((server, reason)) = first_mismatch(core, servers)
            && !self.is_dialect_told.swap(true, Ordering::Relaxed)
        {
            let topic = &self.requests.data.topic;
            tracing::warn!("the server {server} on {topic} {what}: {reason}");
        }
    }

    fn is_ours(&self, endpoint: Guid) -> bool {
        endpoint == self.replies.data.guid || endpoint == self.requests.guid()
    }

    /// Closes a call; its reply will be ignored.
    pub fn close_call(&self, call: CallId) {
        self.calls.lock().forget(call);
    }

    /// Closes the oldest open call.
    pub fn close_oldest(&self) {
        let mut calls = self.calls.lock();
        let oldest = calls.open.keys().next().copied();
        if let Some(oldest) = oldest {
            calls.forget(oldest);
        }
    }

    /// Closes the calls whose servers were all removed, and returns them. Take earlier
    /// replies first. Cheap if no server was removed.
    pub fn close_abandoned(&self) -> Vec<CallId> {
        let mut calls = self.calls.lock();
        let ended = self.requests.events.ended_count();
        if calls.ended_matches == ended {
            return Vec::new();
        }
        calls.ended_matches = ended;
        self.forget_moved_servers(&mut calls);
        let servers = self.requests.matched();
        let is_abandoned =
            |open: &OpenCall| !open.servers.iter().any(|asked| servers.contains(asked));
        let abandoned = calls.open.iter().filter(|(_, open)| is_abandoned(open));
        let abandoned: Vec<_> = abandoned.map(|(call, _)| *call).collect();
        for call in &abandoned {
            calls.forget(*call);
        }
        abandoned
    }

    /// Removes servers that RTPS now reaches instead of another transport. They have not
    /// received the open requests, or cannot reply to them.
    fn forget_moved_servers(&self, calls: &mut CallTable) {
        let moved = self.requests.events.take_moved();
        if moved.is_empty() {
            return;
        }
        for open in calls.open.values_mut() {
            open.servers.retain(|asked| !moved.contains(asked));
        }
    }

    /// Number of open calls.
    pub fn open_count(&self) -> usize {
        self.calls.lock().open.len()
    }

    /// Replies to calls that were closed, in total.
    pub fn unmatched_reply_count(&self) -> u64 {
        self.unmatched_replies.load(Ordering::Relaxed)
    }
}

/// The first of these servers that may not understand clients of Pteros, and why.
fn first_mismatch(core: &Core, servers: &[Guid]) -> Option<(Guid, String)> {
    let mut servers = servers.iter();
    servers.find_map(|server| {
        Some((
            *server,
            core.discovery().graph.service_mismatch_of(server.prefix)?,
        ))
    })
}

/// A client number that no other client is likely to have.
fn client_number_of(reader: Guid) -> u64 {
    let [_, _, _, _, prefix @ ..] = reader.prefix.0;
    let [a, b, c] = reader.entity.key;
    let key = u64::from_be_bytes([0, 0, 0, 0, 0, a, b, c]);
    // Spreads the small keys over all bits.
    u64::from_be_bytes(prefix) ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl CallTable {
    fn is_open(&self, request: &SentRequest) -> bool {
        self.by_sent_request.contains_key(request)
    }

    fn find(&mut self, request: &SentRequest) -> Option<&mut OpenCall> {
        let call = self.by_sent_request.get(request)?;
        self.open.get_mut(call)
    }

    fn close(&mut self, request: &SentRequest) -> Option<CallId> {
        let call = self.by_sent_request.get(request).copied()?;
        self.forget(call);
        Some(call)
    }

    fn forget(&mut self, call: CallId) {
        let open = self.open.remove(&call);
        for request in open.into_iter().flat_map(|open| open.sent) {
            self.by_sent_request.remove(&request);
        }
    }
}

/// A message with its correlation data.
pub(super) struct DirectedMessage<'m> {
    pub(super) message: &'m mut dyn OutboundMessage,
    pub(super) header: Option<RequestHeader>,
    pub(super) related: Option<SampleIdentity>,
    pub(super) only_for: Option<Guid>,
}

impl OutboundMessage for DirectedMessage<'_> {
    fn message_type(&self) -> TypeId {
        self.message.message_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        match self.header {
            None => self.message.shared(),
            Some(_) => None,
        }
    }

    fn serialized(&mut self) -> Bytes {
        let payload = self.message.serialized();
        match self.header {
            None => payload,
            Some(header) => header.insert_into(&payload),
        }
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        // With a header it is serialized again, separately.
        if self.header.is_none() {
            self.message.offer_buffer(memory);
        }
    }

    fn serialized_len(&mut self) -> usize {
        let header = self.header.map_or(0, |_| RequestHeader::len());
        self.message.serialized_len() + header
    }

    fn related(&self) -> Option<SampleIdentity> {
        self.related
    }

    fn directed_to(&self) -> Option<Guid> {
        self.only_for
    }
}
