//! A service's client: requests out, and the replies told apart.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::Timestamp;
use thiserror::Error;

use super::dialect::{Dialect, Head, open, reply_to};
use super::{CLIENT_ID, SERVICE_ID, ServiceSpec};
use crate::core::Core;
use crate::error::{EndpointError, PublishError};
use crate::links::Chunk;
use crate::reader::{ReaderEndpoint, Wants};
use crate::sample::{Item, SharedValue};
use crate::writer::{Outgoing, WriterEndpoint};

/// Calls of one client that wait for a reply. More are refused.
pub const CALLS_MAX: usize = 1_000;

/// One call of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CallId(u64);

impl CallId {
    /// How many calls its client had begun with it; the server's number for it as well
    /// while every call is sent once, as it is unless servers of both dialects are there.
    pub fn number(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

/// A reply that somebody waits for.
pub struct Reply {
    /// What it answers.
    pub call: CallId,
    /// The message and what is known about it.
    pub item: Item,
}

/// Why a request was not sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// Nobody serves.
    #[error("no server is there")]
    NoServer,
    /// Too many calls wait for their replies.
    #[error("{max} calls wait for a reply, the most that may; give up some of them first")]
    TooManyCalls {
        /// The limit.
        max: usize,
    },
    /// The request could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// A client's endpoints and its open calls. Thread-safe.
pub struct ServiceClient {
    /// Writes requests.
    pub requests: Arc<WriterEndpoint>,
    /// Gets replies.
    pub replies: Arc<ReaderEndpoint>,
    /// Its number in headed requests.
    number: u64,
    calls: Mutex<Calls>,
    strays: AtomicU64,
}

#[derive(Default)]
struct Calls {
    last: u64,
    open: BTreeMap<CallId, Open>,
    /// Matches that had ended when it was last looked who is gone.
    ended: u64,
    by_request: BTreeMap<Sent, CallId>,
}

struct Open {
    sent: Vec<Sent>,
    /// The servers that may answer.
    asked: Vec<Guid>,
}

/// A request as servers of one dialect know it.
type Sent = (Dialect, i64);

impl Core {
    /// Creates a client: a writer and a reader that belong together.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_service_client(
        &self,
        mut spec: ServiceSpec,
        wants: Wants,
    ) -> Result<ServiceClient, EndpointError> {
        spec.mark(CLIENT_ID, &self.new_pair_id());
        // First the way back: a server that knows the request's writer should
        // know it too.
        let replies = self.create_reader(spec.replies, wants, false)?;
        let requests = match self.create_writer(spec.requests) {
            Ok(requests) => requests,
            Err(error) => {
                self.remove_reader(&replies);
                return Err(error);
            }
        };
        Ok(ServiceClient {
            number: number_of(replies.data.guid),
            requests,
            replies,
            calls: Mutex::default(),
            strays: AtomicU64::new(0),
        })
    }

    /// Removes a client's endpoints: its servers are told.
    pub fn remove_service_client(&self, client: &ServiceClient) {
        self.remove_writer(&client.requests);
        self.remove_reader(&client.replies);
    }
}

impl ServiceClient {
    /// How many servers are matched on both topics. Looks at what is known;
    /// never blocks.
    pub fn server_count(&self, core: &Core) -> usize {
        let repliers = self.replies.matched();
        let listeners = self.requests.matched();
        let is_complete = |listener: &&Guid| {
            let mut repliers = repliers.iter();
            repliers.any(|replier| core.are_pair(SERVICE_ID, **listener, *replier))
        };
        listeners.iter().filter(is_complete).count()
    }

    /// Sends a request to every server there is, each in its own dialect; the
    /// first to answer is heard. Blocks as publishing does, see
    /// [`Core::publish`].
    ///
    /// # Errors
    /// See [`SendError`]; nothing is waited for then.
    pub fn send(
        &self,
        core: &Core,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<CallId, SendError> {
        if self.server_count(core) == 0 {
            return Err(SendError::NoServer);
        }
        let servers = self.requests.matched();
        let is_headed = |server: &Guid| core.dialect_of(server.prefix) == Dialect::Headed;
        // One for all, unless some of them would read it wrongly.
        let addressees: Vec<_> = match servers.iter().any(is_headed) {
            false => vec![None],
            true => servers.iter().copied().map(Some).collect(),
        };
        // Held while it is published: a reply may be quicker than we are.
        let mut calls = self.calls.lock();
        if calls.open.len() >= CALLS_MAX {
            return Err(SendError::TooManyCalls { max: CALLS_MAX });
        }
        calls.last += 1;
        let call = CallId(calls.last);
        let mut sent = Vec::new();
        let mut failed = None;
        for only_for in addressees {
            let head = only_for.filter(is_headed).map(|_| Head {
                client: self.number,
                sequence: i64::try_from(call.0).unwrap_or(i64::MAX),
            });
            let mut request = Addressed {
                message,
                head,
                related: Some(reply_to(self.replies.data.guid)),
                only_for,
            };
            match (core.publish(&self.requests, &mut request, source), head) {
                (Ok(_), Some(head)) => sent.push((Dialect::Headed, head.sequence)),
                (Ok(sequence), None) => sent.push((Dialect::Related, sequence)),
                (Err(error), _) => failed = Some(error),
            }
        }
        // One that got it may answer.
        if let Some(error) = failed.filter(|_| sent.is_empty()) {
            return Err(error.into());
        }
        for request in &sent {
            calls.by_request.insert(*request, call);
        }
        let asked = servers;
        calls.open.insert(call, Open { sent, asked });
        Ok(call)
    }

    /// Takes the oldest reply that somebody waits for; later ones to the same
    /// call are passed over. Never blocks. A trace has it when whoever gets it
    /// has noted it ([`crate::trace::Tracer::note_taken`]).
    pub fn take_reply(&self, core: &Core) -> Option<Reply> {
        while let Some(mut item) = core.take_untraced(&self.replies) {
            let dialect = core.dialect_of(item.meta.publisher.prefix);
            let request = match open(dialect, &mut item) {
                Some(Some(head))
                    if head.client == self.number || fault!("reply-of-another-taken") =>
                {
                    (dialect, head.sequence)
                }
                Some(None) => match item.related() {
                    Some(related) if self.is_ours(related.writer) => (dialect, related.sequence.0),
                    // Other clients' replies, which not all servers keep from us.
                    _ => continue,
                },
                Some(Some(_)) | None => continue,
            };
            match self.calls.lock().close(&request) {
                Some(call) => return Some(Reply { call, item }),
                None => self.strays.fetch_add(1, Ordering::Relaxed),
            };
        }
        None
    }

    fn is_ours(&self, endpoint: Guid) -> bool {
        endpoint == self.replies.data.guid || endpoint == self.requests.guid()
    }

    /// Waits no longer for a reply to this call.
    pub fn forget(&self, call: CallId) {
        self.calls.lock().forget(call);
    }

    /// Ends the calls whose servers are all gone, and says which. Replies that
    /// came before should be taken first. Costs little when nobody has gone.
    pub fn end_abandoned(&self) -> Vec<CallId> {
        let mut calls = self.calls.lock();
        if fault!("lost-servers-waited-for") {
            return Vec::new();
        }
        let ended = self.requests.events.ended_count();
        if calls.ended == ended {
            return Vec::new();
        }
        calls.ended = ended;
        let servers = self.requests.matched();
        let is_abandoned = |open: &Open| !open.asked.iter().any(|asked| servers.contains(asked));
        let abandoned = calls.open.iter().filter(|(_, open)| is_abandoned(open));
        let abandoned: Vec<_> = abandoned.map(|(call, _)| *call).collect();
        for call in &abandoned {
            calls.forget(*call);
        }
        abandoned
    }

    /// Calls that wait for a reply.
    pub fn open_count(&self) -> usize {
        self.calls.lock().open.len()
    }

    /// Replies that came when nobody waited for them any more, so far.
    pub fn stray_count(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }
}

/// A number for the client that no other is likely to have.
fn number_of(reader: Guid) -> u64 {
    let [_, _, _, _, prefix @ ..] = reader.prefix.0;
    let [a, b, c] = reader.entity.key;
    let key = u64::from_be_bytes([0, 0, 0, 0, 0, a, b, c]);
    // Spreads the keys, which are small, over all bits.
    u64::from_be_bytes(prefix) ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Calls {
    fn close(&mut self, request: &Sent) -> Option<CallId> {
        let call = self.by_request.get(request).copied()?;
        self.forget(call);
        Some(call)
    }

    fn forget(&mut self, call: CallId) {
        let open = self.open.remove(&call);
        if fault!("forgotten-call-answered") {
            return;
        }
        for request in open.into_iter().flat_map(|open| open.sent) {
            self.by_request.remove(&request);
        }
    }
}

/// A message with what makes it a request or a reply.
pub(super) struct Addressed<'m> {
    pub(super) message: &'m mut dyn Outgoing,
    pub(super) head: Option<Head>,
    pub(super) related: Option<SampleIdentity>,
    pub(super) only_for: Option<Guid>,
}

impl Outgoing for Addressed<'_> {
    fn message_type(&self) -> TypeId {
        self.message.message_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        match self.head {
            None => self.message.shared(),
            Some(_) => None,
        }
    }

    fn serialized(&mut self) -> Bytes {
        let payload = self.message.serialized();
        match self.head {
            None => payload,
            Some(head) => head.put_before(&payload),
        }
    }

    fn offer_memory(&mut self, memory: Chunk) {
        // With a head it is written anew, elsewhere.
        if self.head.is_none() {
            self.message.offer_memory(memory);
        }
    }

    fn serialized_len(&mut self) -> usize {
        let head = self.head.map_or(0, |_| Head::len());
        self.message.serialized_len() + head
    }

    fn related(&self) -> Option<SampleIdentity> {
        self.related
    }

    fn only_for(&self) -> Option<Guid> {
        self.only_for
    }
}
