//! Service clients, servers and calls as the simulator knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_runtime::Core;
use pteros_runtime::error::PublishError;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::service::{CallId, RequestId, SendRequestError, ServiceClient, ServiceServer};
use pteros_runtime::writer::WriterEndpoint;

use super::cyclone_header::{CycloneClient, CycloneEnd, CycloneHeader};
use crate::world::graph::message::Message;
use crate::world::graph::model::records::EndpointLocation;

/// Ids of clients and servers in messages, distinct from those of writers.
pub const CLIENT: u32 = 1 << 30;
pub const SERVER: u32 = 1 << 31;

/// Approximate size of a request and of a reply.
pub const MESSAGE_BYTES: usize = 40;

/// Maximum clients and servers of one process.
pub const ENDS_MAX: usize = 4;

/// Number of services.
pub const SERVICES: usize = 2;

/// A client of the engine, or one with the Cyclone header.
pub enum ClientEnd {
    Engine(ServiceClient),
    Cyclone(CycloneClient),
}

pub enum ServerEnd {
    Engine(ServiceServer),
    Cyclone(CycloneEnd),
}

/// Key of a call at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKey {
    Engine(CallId),
    Cyclone(i64),
}

/// Key of a request at its server.
pub enum RequestKey {
    Engine(RequestId),
    Cyclone(CycloneHeader),
}

/// The common part of a client and a server.
pub struct EndRecord {
    pub location: EndpointLocation,
    pub writer: Arc<WriterEndpoint>,
    pub reader: Arc<ReaderEndpoint>,
    pub service: usize,
    pub keeps_all: bool,
    pub gone: bool,
    /// Keeps the task of its ready slots alive.
    pub _task: Arc<dyn Task>,
}

/// State of a client.
pub struct ClientRecord {
    pub base: EndRecord,
    pub end: Arc<ClientEnd>,
    /// Its open calls.
    pub open: BTreeMap<CallKey, usize>,
}

/// State of a server.
pub struct ServerRecord {
    pub base: EndRecord,
    pub end: Arc<ServerEnd>,
    /// Requests with a later reply, and their calls.
    pub pending: Vec<(usize, RequestKey)>,
    /// Calls that it took, that it has answered, and that it will never answer.
    pub taken: BTreeSet<usize>,
    pub answered: BTreeSet<usize>,
    pub ignored: BTreeSet<usize>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Answered,
    ServerGone,
    TimedOut,
    Refused,
    /// The attacker replied.
    FromAttacker,
}

/// State of a call.
pub struct CallRecord {
    pub client: usize,
    pub key: Option<CallKey>,
    /// Request readers of the servers that were matched.
    pub servers: Vec<Guid>,
    pub outcome: Option<CallOutcome>,
}

/// All clients, servers and calls.
#[derive(Default)]
pub struct Services {
    pub clients: Vec<ClientRecord>,
    pub servers: Vec<ServerRecord>,
    pub calls: Vec<CallRecord>,
    /// Servers by endpoint.
    pub by_guid: BTreeMap<Guid, usize>,
    /// Ended matches: the reporting endpoint and its peer.
    pub lost_matches: BTreeSet<(Guid, Guid)>,
    /// Number of calls with a reply.
    pub answered: u64,
}

impl Services {
    /// The living clients, then the living servers.
    pub fn living(&self) -> impl Iterator<Item = (ServiceEndKind, usize, &EndRecord)> {
        let clients = self.clients.iter().map(|client| &client.base).enumerate();
        let clients = clients.map(|(index, record)| (ServiceEndKind::Client, index, record));
        let servers = self.servers.iter().map(|server| &server.base).enumerate();
        let servers = servers.map(|(index, record)| (ServiceEndKind::Server, index, record));
        clients.chain(servers).filter(|(.., record)| !record.gone)
    }

    /// The record of a client or server.
    pub fn record(&mut self, kind: ServiceEndKind, index: usize) -> &mut EndRecord {
        match kind {
            ServiceEndKind::Client => &mut self.clients[index].base,
            ServiceEndKind::Server => &mut self.servers[index].base,
        }
    }
}

impl ClientEnd {
    pub fn requests(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(client) => &client.requests,
            Self::Cyclone(client) => &client.end.writer,
        }
    }

    pub fn replies(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(client) => &client.replies,
            Self::Cyclone(client) => &client.end.reader,
        }
    }

    pub fn server_count(&self, core: &Core) -> usize {
        match self {
            Self::Engine(client) => client.server_count(core),
            Self::Cyclone(client) => client.end.peers().len(),
        }
    }

    pub fn send(&self, core: &Core, message: &mut Message) -> Result<CallKey, SendRequestError> {
        match self {
            Self::Engine(client) => client
                .send(core, message, core.platform.wall_clock())
                .map(CallKey::Engine),
            Self::Cyclone(_) if self.server_count(core) == 0 => Err(SendRequestError::NoServer),
            Self::Cyclone(client) => Ok(client.send(core, message).map(CallKey::Cyclone)?),
        }
    }

    pub fn take(&self, core: &Core) -> Option<(CallKey, QueuedSample)> {
        match self {
            Self::Engine(client) => {
                let reply = client.take_reply(core)?;
                Some((CallKey::Engine(reply.call), reply.message))
            }
            Self::Cyclone(client) => {
                let (sequence, item) = client.take(core)?;
                Some((CallKey::Cyclone(sequence), item))
            }
        }
    }

    /// Calls that ended because all their servers are gone. Clients with the
    /// Cyclone header have no such report.
    pub fn end_abandoned(&self) -> Vec<CallKey> {
        match self {
            Self::Engine(client) => {
                let ended = client.close_abandoned().into_iter();
                ended.map(CallKey::Engine).collect()
            }
            Self::Cyclone(_) => Vec::new(),
        }
    }
}

impl ServerEnd {
    pub fn requests(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(server) => &server.requests,
            Self::Cyclone(end) => &end.reader,
        }
    }

    pub fn replies(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(server) => &server.replies,
            Self::Cyclone(end) => &end.writer,
        }
    }

    pub fn take(&self, core: &Core) -> Option<(RequestKey, QueuedSample)> {
        match self {
            Self::Engine(server) => {
                let request = server.take_request(core)?;
                Some((RequestKey::Engine(request.id), request.item))
            }
            Self::Cyclone(end) => {
                let (head, item) = end.take(core)?;
                Some((RequestKey::Cyclone(head), item))
            }
        }
    }

    pub fn reply(
        &self,
        core: &Core,
        request: &RequestKey,
        message: &mut Message,
    ) -> Result<(), PublishError> {
        match (self, request) {
            (Self::Engine(server), RequestKey::Engine(id)) => server.reply(core, id, message),
            (Self::Cyclone(end), RequestKey::Cyclone(head)) => end.send(core, *head, message),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceEndKind {
    /// Sends requests.
    Client,
    /// Sends replies.
    Server,
}
