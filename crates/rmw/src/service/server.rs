//! A service's server: requests in, and each reply to whoever asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};

use super::client::Addressed;
use super::dialect::{Head, open};
use super::{CLIENT_ID, SERVICE_ID, ServiceSpec};
use crate::core::Core;
use crate::error::{EndpointError, PublishError};
use crate::reader::{ReaderEndpoint, Wants};
use crate::sample::Item;
use crate::writer::{Outgoing, WriterEndpoint};

/// Replies kept for clients whose reader of replies is not known yet. When there
/// are more, the oldest is given up and counted.
pub const PARKED_MAX: usize = 64;

/// Whose request it is: what a reply needs to find its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId {
    /// Who published it.
    pub client: Guid,
    /// The client's number for it.
    pub sequence: i64,
    reply: ReplyTo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplyTo {
    /// The endpoint that it names: the reader of replies, or the writer.
    Named(Guid),
    Headed(u64),
}

/// A request to be answered.
pub struct Request {
    /// Whose it is.
    pub id: RequestId,
    /// The message and what is known about it.
    pub item: Item,
}

/// The counters of a server. Totals since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Requests that were no message of their dialect.
    pub malformed: u64,
    /// Replies given up since their client was never met, or was gone.
    pub unanswerable: u64,
}

/// A server's endpoints. Thread-safe.
pub struct ServiceServer {
    /// Gets requests.
    pub requests: Arc<ReaderEndpoint>,
    /// Writes replies.
    pub replies: Arc<WriterEndpoint>,
    parked: Mutex<VecDeque<Parked>>,
    malformed: AtomicU64,
    unanswerable: AtomicU64,
}

/// A reply that waits for its client's reader.
struct Parked {
    id: RequestId,
    payload: Bytes,
}

/// Where a reply can go now.
enum Way {
    /// To one reader.
    To(Guid),
    /// To all readers, which tell their own from others'.
    ToAll,
    /// Its reader is still to be met.
    NotYet,
}

impl Core {
    /// Creates a server: a reader and a writer that belong together.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_service_server(
        &self,
        mut spec: ServiceSpec,
        wants: Wants,
    ) -> Result<ServiceServer, EndpointError> {
        spec.mark(SERVICE_ID, &self.new_pair_id());
        let replies = self.create_writer(spec.replies)?;
        let requests = match self.create_reader(spec.requests, wants, false) {
            Ok(requests) => requests,
            Err(error) => {
                self.remove_writer(&replies);
                return Err(error);
            }
        };
        Ok(ServiceServer {
            requests,
            replies,
            parked: Mutex::default(),
            malformed: AtomicU64::new(0),
            unanswerable: AtomicU64::new(0),
        })
    }

    /// Removes a server's endpoints: its clients are told.
    pub fn remove_service_server(&self, server: &ServiceServer) {
        self.remove_reader(&server.requests);
        self.remove_writer(&server.replies);
    }
}

impl ServiceServer {
    /// Takes the oldest request. Never blocks.
    pub fn take_request(&self, core: &Core) -> Option<Request> {
        loop {
            let mut item = core.take(&self.requests)?;
            let client = item.meta.publisher;
            let Some(head) = open(core.dialect_of(client.prefix), &mut item) else {
                self.malformed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let id = match head {
                Some(head) => RequestId {
                    client,
                    sequence: head.sequence,
                    reply: ReplyTo::Headed(head.client),
                },
                None => RequestId {
                    client,
                    sequence: item.meta.sequence,
                    reply: ReplyTo::Named(item.related().map_or(client, |to| to.writer)),
                },
            };
            return Some(Request { id, item });
        }
    }

    /// Sends the reply to a request, or keeps it until its client's reader is
    /// met ([`PARKED_MAX`]). Blocks as publishing does, see [`Core::publish`].
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn reply(
        &self,
        core: &Core,
        id: &RequestId,
        message: &mut dyn Outgoing,
    ) -> Result<(), PublishError> {
        match self.way(core, id) {
            Way::NotYet => {
                let payload = message.serialized();
                self.park(Parked { id: *id, payload });
                // It may have been met between the two looks.
                self.flush(core);
                Ok(())
            }
            way => self.send(core, id, message, &way),
        }
    }

    fn send(
        &self,
        core: &Core,
        id: &RequestId,
        message: &mut dyn Outgoing,
        way: &Way,
    ) -> Result<(), PublishError> {
        let (head, related) = match id.reply {
            ReplyTo::Headed(client) => {
                let sequence = id.sequence;
                (Some(Head { client, sequence }), None)
            }
            ReplyTo::Named(writer) => {
                let wrong = i64::from(fault!("reply-names-another-request"));
                let sequence = SequenceNumber(id.sequence.saturating_sub(wrong));
                (None, Some(SampleIdentity { writer, sequence }))
            }
        };
        let mut reply = Addressed {
            message,
            head,
            related,
            only_for: match way {
                Way::To(reader) => Some(*reader),
                Way::ToAll | Way::NotYet => None,
            },
        };
        core.publish(&self.replies, &mut reply, core.env.wall())?;
        Ok(())
    }

    fn way(&self, core: &Core, id: &RequestId) -> Way {
        let matched = self.replies.matched();
        if let ReplyTo::Named(reader) = id.reply
            && reader.entity.is_reader()
        {
            return match matched.contains(&reader) {
                true => Way::To(reader),
                false => Way::NotYet,
            };
        }
        let is_clients = |reader: &&Guid| core.are_pair(CLIENT_ID, id.client, **reader);
        let mut of_client = matched.iter().filter(is_clients);
        match (of_client.next(), of_client.next()) {
            (None, _) => Way::NotYet,
            (Some(reader), None) => Way::To(*reader),
            (Some(_), Some(_)) => Way::ToAll,
        }
    }

    fn park(&self, reply: Parked) {
        if fault!("early-reply-dropped") {
            return;
        }
        let mut parked = self.parked.lock();
        if parked.len() >= PARKED_MAX {
            parked.pop_front();
            self.unanswerable.fetch_add(1, Ordering::Relaxed);
        }
        parked.push_back(reply);
    }

    /// Sends what was kept for clients that have been met since, and gives up
    /// what was for those that are gone. To be called when a client matches.
    pub fn flush(&self, core: &Core) {
        if fault!("early-reply-kept-for-ever") {
            return;
        }
        let parked = std::mem::take(&mut *self.parked.lock());
        for reply in parked {
            match self.way(core, &reply.id) {
                Way::NotYet if self.requests.matched().contains(&reply.id.client) => {
                    self.park(reply);
                }
                Way::NotYet => {
                    self.unanswerable.fetch_add(1, Ordering::Relaxed);
                }
                way => {
                    let mut message = Kept(reply.payload);
                    if let Err(error) = self.send(core, &reply.id, &mut message, &way) {
                        self.unanswerable.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(topic = %self.replies.data.topic, "a late reply: {error}");
                    }
                }
            }
        }
    }

    /// Clients matched on both topics. Never blocks.
    pub fn client_count(&self, core: &Core) -> usize {
        let readers = self.replies.matched();
        let is_complete = |writer: &&Guid| {
            let mut readers = readers.iter();
            readers.any(|reader| core.are_pair(CLIENT_ID, **writer, *reader))
        };
        self.requests.matched().iter().filter(is_complete).count()
    }

    /// Whether replies wait for their clients.
    pub fn has_parked(&self) -> bool {
        !self.parked.lock().is_empty()
    }

    /// The counters.
    pub fn counts(&self) -> ServerCounts {
        ServerCounts {
            malformed: self.malformed.load(Ordering::Relaxed),
            unanswerable: self.unanswerable.load(Ordering::Relaxed),
        }
    }
}

/// A reply as it was kept.
struct Kept(Bytes);

impl Outgoing for Kept {
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
