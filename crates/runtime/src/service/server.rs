//! Service server: receives requests and sends each reply to its client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use pteros_dcps::correlation::{CorrelationStyle, RequestHeader, decode_request_header};
use pteros_dcps::sample::{KEEP_ALL_SAMPLES_DEFAULT, samples_max};
use pteros_rtps::id::Guid;
use pteros_rtps::qos::History;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use thiserror::Error;

use super::client::DirectedMessage;
use super::{CLIENT_ID, SERVICE_ID, ServiceSpec};
use crate::core::Core;
use crate::endpoints::reader::{DeliveryForm, ReaderEndpoint};
use crate::endpoints::writer::WriterEndpoint;
use crate::error::{EndpointError, PublishError};
use crate::lock::{Mutex, rank};
use crate::outbound::OutboundMessage;
use crate::sample::QueuedSample;

/// Pending replies for clients whose reply reader is not discovered yet. When full, the
/// oldest is dropped and counted. With KEEP_ALL, as many as its writer keeps are pending, as
/// far as they fit in 16 MiB.
pub const PENDING_REPLIES_MAX: usize = 64;

/// Memory of the pending replies of a server with KEEP_ALL, bytes.
/// [`PENDING_REPLIES_MAX`] replies may exceed it.
const PENDING_BYTES_MAX: usize = 16 << 20;

/// Identity of a request, with the destination of its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId {
    /// The client's request writer.
    pub client: Guid,
    /// The client's sequence number.
    pub sequence: i64,
    reply_to: ReplyTo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplyTo {
    /// The endpoint that the request names: the reader of replies, or the writer.
    Named(Guid),
    Headed(u64),
}

/// A request with the identity for its reply.
pub struct ReceivedRequest {
    /// Identifies the request in its reply.
    pub id: RequestId,
    /// The message and its metadata.
    pub item: QueuedSample,
}

/// The counters of a server. Totals since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceServerCounts {
    /// Replies dropped because their client was never discovered, or was removed.
    pub unanswerable: u64,
}

/// A server's endpoints. Thread-safe.
pub struct ServiceServer {
    /// Gets requests.
    pub requests: Arc<ReaderEndpoint>,
    /// Writes replies.
    pub replies: Arc<WriterEndpoint>,
    pending_replies: Mutex<PendingReplies, rank::PendingReplies>,
    unanswerable: AtomicU64,
    /// The log line about a client of an unknown dialect was written.
    is_dialect_told: AtomicBool,
}

/// A reply that waits for its client's reader.
struct PendingReply {
    id: RequestId,
    payload: Bytes,
}

/// The pending replies of a server, oldest first.
#[derive(Default)]
struct PendingReplies {
    queue: VecDeque<PendingReply>,
    bytes: usize,
}

impl PendingReplies {
    /// Appends a reply; `count_max` may be pending. Returns how many of the oldest had to go.
    fn push(&mut self, reply: PendingReply, count_max: usize) -> u64 {
        let added = reply.payload.len();
        let mut dropped = 0;
        while self.queue.len() >= count_max
            || (self.queue.len() >= PENDING_REPLIES_MAX && self.bytes + added > PENDING_BYTES_MAX)
        {
            let Some(oldest) = self.queue.pop_front() else {
                break;
            };
            self.bytes -= oldest.payload.len();
            dropped += 1;
        }
        self.bytes += added;
        self.queue.push_back(reply);
        dropped
    }
}

/// Present route of a reply.
enum ReplyRoute {
    /// To the client's reply reader (directed write).
    Reader(Guid),
    /// To all readers, which recognise their own replies.
    AllReaders,
    /// Its reader is not discovered yet.
    Unmatched,
}

impl Core {
    /// Creates a server: a reader and a writer that belong together.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_service_server(
        &self,
        mut spec: ServiceSpec,
        wants: DeliveryForm,
    ) -> Result<ServiceServer, EndpointError> {
        spec.set_pair_id(SERVICE_ID, &self.new_pair_id());
        let replies = self.create_writer(spec.replies)?;
        let requests = match self.create_reader(spec.requests, wants, false) {
            Ok(requests) => requests,
            Err(error) => {
                self.remove_writer(&replies);
                return Err(error);
            }
        };
        for endpoint in [requests.data.guid, replies.guid()] {
            self.discovery()
                .transports
                .note_service_hash(endpoint, spec.type_hash);
        }
        Ok(ServiceServer {
            requests,
            replies,
            pending_replies: Mutex::default(),
            unanswerable: AtomicU64::new(0),
            is_dialect_told: AtomicBool::new(false),
        })
    }

    /// Removes a server's endpoints and informs its clients.
    pub fn remove_service_server(&self, server: &ServiceServer) {
        self.remove_reader(&server.requests);
        self.remove_writer(&server.replies);
    }
}

impl ServiceServer {
    /// Takes the oldest request. Never blocks.
    pub fn take_request(&self, core: &Core) -> Option<ReceivedRequest> {
        self.take_decoded_request(core, Ok::<_, Infallible>)
    }

    /// Takes the oldest request that `decode` accepts. Never blocks.
    ///
    /// A refused request is dropped, see [`TakePath::take_decoded`](crate::TakePath::take_decoded). Its client gets no
    /// response: ROS 2 has no error response, and another server may answer. A client of
    /// Pteros logs it.
    pub fn take_decoded_request<T, E: Display>(
        &self,
        core: &Core,
        mut decode: impl FnMut(ReceivedRequest) -> Result<T, E>,
    ) -> Option<T> {
        core.discovery()
            .taking
            .take_decoded(&self.requests, |mut item| {
                let client = item.meta.publisher;
                let style = core.discovery().graph.correlation_style_of(client.prefix);
                let Some(header) = decode_request_header(style, &mut item) else {
                    return Err(UndecodableRequest::NoHeader);
                };
                self.tell_dialect(core, &item, client);
                let id = match header {
                    Some(header) => RequestId {
                        client,
                        sequence: header.sequence,
                        reply_to: ReplyTo::Headed(header.client),
                    },
                    None => RequestId {
                        client,
                        sequence: item.meta.sequence,
                        reply_to: ReplyTo::Named(item.related().map_or(client, |to| to.writer)),
                    },
                };
                decode(ReceivedRequest { id, item }).map_err(UndecodableRequest::Message)
            })
    }

    /// The id of a request that was not taken here, by client and number. The reply then
    /// names the client's writer. `None`, counted as unanswerable, for a client whose
    /// identity is only in the request.
    pub fn request_by_name(&self, core: &Core, client: Guid, sequence: i64) -> Option<RequestId> {
        if core.discovery().graph.correlation_style_of(client.prefix)
            == CorrelationStyle::PayloadHeader
        {
            self.unanswerable.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(RequestId {
            client,
            sequence,
            reply_to: ReplyTo::Named(client),
        })
    }

    /// Logs once a client whose requests have no id in the inline QoS, and whose stack
    /// has no known correlation style. It may not receive replies.
    fn tell_dialect(&self, core: &Core, request: &QueuedSample, client: Guid) {
        if request.related().is_none()
            && let Some(reason) = core.discovery().graph.service_mismatch_of(client.prefix)
            && !self.is_dialect_told.swap(true, Ordering::Relaxed)
        {
            let topic = &self.requests.data.topic;
            tracing::warn!(
                "the client {client} on {topic} sends requests without an id in the inline QoS: \
                 {reason}"
            );
        }
    }

    /// Sends the reply to a request. Blocks as [`Core::publish`] does.
    ///
    /// Keeps it while its client's reader is not discovered
    /// ([`PENDING_REPLIES_MAX`]).
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn reply(
        &self,
        core: &Core,
        id: &RequestId,
        message: &mut dyn OutboundMessage,
    ) -> Result<(), PublishError> {
        match self.reply_route(core, id) {
            ReplyRoute::Unmatched => {
                let payload = message.serialized();
                self.keep_pending(PendingReply { id: *id, payload });
                // It may have been discovered between the two checks, or is removed.
                let is_discovered = !matches!(self.reply_route(core, id), ReplyRoute::Unmatched);
                if is_discovered || !self.requests.matched().contains(&id.client) {
                    self.flush(core);
                }
                Ok(())
            }
            route => self.send(core, id, message, &route),
        }
    }

    fn send(
        &self,
        core: &Core,
        id: &RequestId,
        message: &mut dyn OutboundMessage,
        route: &ReplyRoute,
    ) -> Result<(), PublishError> {
        let (header, related) = match id.reply_to {
            ReplyTo::Headed(client) => {
                let sequence = id.sequence;
                (Some(RequestHeader { client, sequence }), None)
            }
            ReplyTo::Named(writer) => {
                let sequence = SequenceNumber(id.sequence);
                (None, Some(SampleIdentity { writer, sequence }))
            }
        };
        let mut reply = DirectedMessage {
            message,
            header,
            related,
            only_for: match route {
                ReplyRoute::Reader(reader) => Some(*reader),
                ReplyRoute::AllReaders | ReplyRoute::Unmatched => None,
            },
        };
        core.publish(&self.replies, &mut reply, core.platform.wall_clock())?;
        Ok(())
    }

    fn reply_route(&self, core: &Core, id: &RequestId) -> ReplyRoute {
        let matched = self.replies.matched();
        if let ReplyTo::Named(reader) = id.reply_to
            && reader.entity.is_reader()
        {
            return if matched.contains(&reader) {
                ReplyRoute::Reader(reader)
            } else {
                ReplyRoute::Unmatched
            };
        }
        let is_clients = |reader: &&Guid| {
            core.discovery()
                .graph
                .are_pair(CLIENT_ID, id.client, **reader)
        };
        let mut of_client = matched.iter().filter(is_clients);
        match (of_client.next(), of_client.next()) {
            (None, _) => ReplyRoute::Unmatched,
            (Some(reader), None) => ReplyRoute::Reader(*reader),
            (Some(_), Some(_)) => ReplyRoute::AllReaders,
        }
    }

    fn keep_pending(&self, reply: PendingReply) {
        let qos = &self.replies.data.qos;
        let count_max = match qos.history {
            History::KeepAll => {
                samples_max(&qos.resource_limits).unwrap_or(KEEP_ALL_SAMPLES_DEFAULT)
            }
            History::KeepLast(_) => PENDING_REPLIES_MAX,
        };
        let count_max = count_max.max(PENDING_REPLIES_MAX);
        let dropped = self.pending_replies.lock().push(reply, count_max);
        self.unanswerable.fetch_add(dropped, Ordering::Relaxed);
    }

    /// Sends pending replies of clients that were discovered since, and drops those of
    /// removed clients. Call when a client matches.
    pub fn flush(&self, core: &Core) {
        // If a client matches while a reply is put back, another thread was notified and
        // found nothing. So this thread checks again.
        loop {
            let pending = std::mem::take(&mut *self.pending_replies.lock());
            for reply in pending.queue {
                self.send_pending(core, reply);
            }
            let pending = self.pending_replies.lock();
            let kept: Vec<RequestId> = pending.queue.iter().map(|reply| reply.id).collect();
            drop(pending);
            let is_sendable = |id| !matches!(self.reply_route(core, id), ReplyRoute::Unmatched);
            if !kept.iter().any(is_sendable) {
                return;
            }
        }
    }

    fn send_pending(&self, core: &Core, reply: PendingReply) {
        match self.reply_route(core, &reply.id) {
            ReplyRoute::Unmatched if self.requests.matched().contains(&reply.id.client) => {
                self.keep_pending(reply);
            }
            ReplyRoute::Unmatched => {
                self.unanswerable.fetch_add(1, Ordering::Relaxed);
            }
            route => {
                let mut message = StoredReply(reply.payload);
                if let Err(error) = self.send(core, &reply.id, &mut message, &route) {
                    self.unanswerable.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(topic = %self.replies.data.topic, "deferred reply: {error}");
                }
            }
        }
    }

    /// Number of clients matched on both topics. Never blocks.
    pub fn client_count(&self, core: &Core) -> usize {
        let readers = self.replies.matched();
        let is_complete = |writer: &&Guid| {
            let mut readers = readers.iter();
            readers.any(|reader| {
                core.discovery()
                    .graph
                    .are_pair(CLIENT_ID, **writer, *reader)
            })
        };
        self.requests.matched().iter().filter(is_complete).count()
    }

    /// Whether replies are pending for undiscovered clients.
    pub fn has_pending_replies(&self) -> bool {
        !self.pending_replies.lock().queue.is_empty()
    }

    /// The counters.
    pub fn counts(&self) -> ServiceServerCounts {
        ServiceServerCounts {
            unanswerable: self.unanswerable.load(Ordering::Relaxed),
        }
    }
}

/// Why a request is dropped.
#[derive(Debug, Error)]
enum UndecodableRequest<E> {
    #[error("it is too short for the header that requests of this vendor have")]
    NoHeader,
    #[error("{0}")]
    Message(E),
}

/// A kept reply.
struct StoredReply(Bytes);

impl OutboundMessage for StoredReply {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn crate::sample::SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pending_replies_are_limited_by_their_bytes() {
        let id = RequestId {
            client: Guid::default(),
            sequence: 1,
            reply_to: ReplyTo::Headed(1),
        };
        let payload = Bytes::from(vec![0; PENDING_BYTES_MAX / PENDING_REPLIES_MAX]);
        let mut pending = PendingReplies::default();
        for number in 1..=3 * PENDING_REPLIES_MAX {
            let payload = payload.clone();
            let dropped = pending.push(PendingReply { id, payload }, KEEP_ALL_SAMPLES_DEFAULT);
            assert_eq!(dropped, u64::from(number > PENDING_REPLIES_MAX));
        }
        assert_eq!(pending.bytes, PENDING_BYTES_MAX);
        // One that is larger than all makes room by the oldest, down to the least count.
        let payload = Bytes::from(vec![0; 2 * PENDING_BYTES_MAX]);
        let dropped = pending.push(PendingReply { id, payload }, KEEP_ALL_SAMPLES_DEFAULT);
        assert_eq!((dropped, pending.queue.len()), (1, PENDING_REPLIES_MAX));
    }
}
