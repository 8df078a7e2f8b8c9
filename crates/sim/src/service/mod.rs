//! Service clients and servers of a simulated graph.
//!
//! Clients call, and some abandon their calls. Servers reply at once, later or
//! never. Both come, go, and die with their processes.
//!
//! I13 (`checks.rs`, service correlation): an accepted call ends once, with its own
//! reply or with an error that its client sees.

mod calls;
mod checks;
mod cyclone_header;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Reliability};
use pteros_runtime::error::PublishError;
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::Task;
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::service::{
    CallId, RequestId, SendRequestError, ServiceClient, ServiceServer, ServiceSpec,
};
use pteros_runtime::writer::WriterEndpoint;
use pteros_runtime::{Core, EndpointSpec};

use crate::message::Message;
use crate::model::{EndpointLocation, ReadySource, ReadyTask};
use crate::schedule::SimEvent;
use crate::world::SimWorld;
pub(crate) use cyclone_header::rewrite_vendor_id;
use cyclone_header::{CycloneClient, CycloneEnd, CycloneHeader};

const MILLI: u64 = 1_000_000;

/// Ids of clients and servers in messages, distinct from those of writers.
const CLIENT: u32 = 1 << 30;
const SERVER: u32 = 1 << 31;

/// Approximate size of a request and of a reply.
const MESSAGE_BYTES: usize = 40;

/// Maximum clients and servers of one process.
const ENDS_MAX: usize = 4;

/// Number of services.
const SERVICES: usize = 2;

/// A client of the engine, or one with the Cyclone header.
enum ClientEnd {
    Engine(ServiceClient),
    Cyclone(CycloneClient),
}

enum ServerEnd {
    Engine(ServiceServer),
    Cyclone(CycloneEnd),
}

/// Key of a call at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallKey {
    Engine(CallId),
    Cyclone(i64),
}

/// Key of a request at its server.
enum RequestKey {
    Engine(RequestId),
    Cyclone(CycloneHeader),
}

/// State of a client.
pub(crate) struct ClientRecord {
    location: EndpointLocation,
    end: Arc<ClientEnd>,
    service: usize,
    keeps_all: bool,
    _task: Arc<dyn Task>,
    gone: bool,
    /// Its open calls.
    open: BTreeMap<CallKey, usize>,
}

/// State of a server.
pub(crate) struct ServerRecord {
    location: EndpointLocation,
    end: Arc<ServerEnd>,
    service: usize,
    keeps_all: bool,
    _task: Arc<dyn Task>,
    gone: bool,
    /// Requests with a later reply, and their calls.
    pending: Vec<(usize, RequestKey)>,
    /// Calls that it took, that it has answered, and that it will never answer.
    taken: BTreeSet<usize>,
    answered: BTreeSet<usize>,
    ignored: BTreeSet<usize>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOutcome {
    Answered,
    ServerGone,
    TimedOut,
    Refused,
    /// The attacker replied.
    FromAttacker,
}

/// State of a call.
pub(crate) struct CallRecord {
    client: usize,
    key: Option<CallKey>,
    /// Request readers of the servers that were matched.
    servers: Vec<Guid>,
    outcome: Option<CallOutcome>,
}

/// All clients, servers and calls.
#[derive(Default)]
pub(crate) struct Services {
    clients: Vec<ClientRecord>,
    servers: Vec<ServerRecord>,
    calls: Vec<CallRecord>,
    /// Servers by endpoint.
    by_guid: BTreeMap<Guid, usize>,
    /// Ended matches: the reporting endpoint and its peer.
    lost_matches: BTreeSet<(Guid, Guid)>,
    /// Number of calls with a reply.
    answered: u64,
}

impl ClientEnd {
    fn requests(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(client) => &client.requests,
            Self::Cyclone(client) => &client.end.writer,
        }
    }

    fn replies(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(client) => &client.replies,
            Self::Cyclone(client) => &client.end.reader,
        }
    }

    fn server_count(&self, core: &Core) -> usize {
        match self {
            Self::Engine(client) => client.server_count(core),
            Self::Cyclone(client) => client.end.peers().len(),
        }
    }

    fn send(&self, core: &Core, message: &mut Message) -> Result<CallKey, SendRequestError> {
        match self {
            Self::Engine(client) => client
                .send(core, message, core.platform.wall_clock())
                .map(CallKey::Engine),
            Self::Cyclone(_) if self.server_count(core) == 0 => Err(SendRequestError::NoServer),
            Self::Cyclone(client) => Ok(client.send(core, message).map(CallKey::Cyclone)?),
        }
    }

    fn take(&self, core: &Core) -> Option<(CallKey, QueuedSample)> {
        match self {
            Self::Engine(client) => {
                let reply = client.take_reply(core)?;
                Some((CallKey::Engine(reply.call), reply.item))
            }
            Self::Cyclone(client) => {
                let (sequence, item) = client.take(core)?;
                Some((CallKey::Cyclone(sequence), item))
            }
        }
    }

    /// Calls that ended because all their servers are gone. Clients with the
    /// Cyclone header have no such report.
    fn end_abandoned(&self) -> Vec<CallKey> {
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
    fn requests(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(server) => &server.requests,
            Self::Cyclone(end) => &end.reader,
        }
    }

    fn replies(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(server) => &server.replies,
            Self::Cyclone(end) => &end.writer,
        }
    }

    fn take(&self, core: &Core) -> Option<(RequestKey, QueuedSample)> {
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

    fn reply(
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

/// Kind of a service end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceEndKind {
    /// Sends requests.
    Client,
    /// Sends replies.
    Server,
}

/// The request and reply endpoints of a service.
fn spec(service: usize, keeps_all: bool) -> ServiceSpec {
    let end = |prefix: &str, part: &str| EndpointSpec {
        topic: format!("{prefix}/sim{service}{part}"),
        type_name: format!("sim::srv::dds_::S{service}_{part}_"),
        qos: EndpointQos {
            reliability: Reliability::Reliable,
            history: if keeps_all {
                History::KeepAll
            } else {
                // The default of ROS 2 for services.
                History::KeepLast(10)
            },
            ..EndpointQos::default()
        },
        ..EndpointSpec::default()
    };
    ServiceSpec {
        requests: end("rq", "Request"),
        replies: end("rr", "Reply"),
    }
}

impl SimWorld {
    /// Whether a process appears as Cyclone DDS. It has services only.
    pub(crate) fn is_cyclone(&self, process: usize) -> bool {
        self.plan.cyclone_process && process == 0
    }

    /// Adds a client or server of a random service, up to a maximum.
    pub(crate) fn add_random_service(&self, process: usize) {
        let living = self.ends_of(|location| location.process == process);
        if living.len() >= ENDS_MAX {
            return;
        }
        let mut schedule = self.schedule.lock();
        let service = schedule.random.usize(0..SERVICES);
        let keeps_all = schedule.random.bool();
        let kind = if schedule.random.bool() {
            ServiceEndKind::Client
        } else {
            ServiceEndKind::Server
        };
        drop(schedule);
        self.add_end(process, kind, service, keeps_all);
    }

    /// Adds a client or server and returns its index among its kind.
    fn add_end(
        &self,
        process: usize,
        kind: ServiceEndKind,
        service: usize,
        keeps_all: bool,
    ) -> Option<usize> {
        let (core, location) = (self.core(process)?, self.location(process)?);
        let wants = if self.schedule.lock().random.bool() {
            DeliveryForm::Bytes
        } else {
            DeliveryForm::Type(Message::rust_type())
        };
        let spec = spec(service, keeps_all);
        let is_cyclone = self.is_cyclone(process);
        let mut services = self.services.lock();
        let task = |ready| -> Arc<dyn Task> {
            Arc::new(ReadyTask {
                ready,
                ready_sources: self.ready_sources.clone(),
            })
        };
        let (index, ready, writer, reader);
        match kind {
            ServiceEndKind::Client => {
                index = services.clients.len();
                let made = if is_cyclone {
                    CycloneClient::new(&core, spec, index as u64 + 1).map(ClientEnd::Cyclone)
                } else {
                    core.create_service_client(spec, wants)
                        .ok()
                        .map(ClientEnd::Engine)
                };
                let end = Arc::new(self.made(made, process)?);
                ready = task(ReadySource::Client(index));
                (writer, reader) = (end.requests().clone(), end.replies().clone());
                services.clients.push(ClientRecord {
                    location,
                    end,
                    service,
                    keeps_all,
                    _task: ready.clone(),
                    gone: false,
                    open: BTreeMap::new(),
                });
                let mut schedule = self.schedule.lock();
                if !schedule.healed {
                    let at = self.now() + schedule.around(2 * self.plan.period);
                    schedule.add(at, SimEvent::Call(index));
                }
            }
            ServiceEndKind::Server => {
                index = services.servers.len();
                let made = if is_cyclone {
                    let id = format!("serviceid={index:x};");
                    CycloneEnd::new(&core, spec.replies, spec.requests, &id).map(ServerEnd::Cyclone)
                } else {
                    core.create_service_server(spec, wants)
                        .ok()
                        .map(ServerEnd::Engine)
                };
                let end = Arc::new(self.made(made, process)?);
                ready = task(ReadySource::Server(index));
                (writer, reader) = (end.replies().clone(), end.requests().clone());
                services.by_guid.insert(writer.guid(), index);
                services.by_guid.insert(reader.data.guid, index);
                services.servers.push(ServerRecord {
                    location,
                    end,
                    service,
                    keeps_all,
                    _task: ready.clone(),
                    gone: false,
                    pending: Vec::new(),
                    taken: BTreeSet::new(),
                    answered: BTreeSet::new(),
                    ignored: BTreeSet::new(),
                });
            }
        }
        drop(services);
        core.attach_endpoint(location.node, &writer.data);
        core.attach_endpoint(location.node, &reader.data);
        self.trace_line(format_args!(
            "new {kind:?} {index} of service {service} at p{process}: {} {}, all {keeps_all}",
            writer.guid(),
            reader.data.guid
        ));
        let queue = self.queue(process)?;
        for slot in [&writer.events.slot, &reader.events.slot, &reader.slot] {
            slot.set_task(Arc::downgrade(&ready));
        }
        let has_events = |events: &EndpointEvents| !events.is_empty();
        let attach = |slot: &pteros_runtime::ready_queue::ReadySlot, pending: bool| {
            slot.attach(Some(queue.clone()), || pending);
        };
        attach(&writer.events.slot, has_events(&writer.events));
        attach(&reader.events.slot, has_events(&reader.events));
        attach(&reader.slot, reader.has_samples());
        self.drain_ready(process);
        Some(index)
    }

    fn made<T>(&self, made: Option<T>, process: usize) -> Option<T> {
        if made.is_none() {
            self.fail(format!(
                "I11 p{process}: cannot create a service client or server"
            ));
        }
        made
    }

    /// The clients and servers at a location.
    fn ends_of(
        &self,
        is_there: impl Fn(&EndpointLocation) -> bool,
    ) -> Vec<(ServiceEndKind, usize)> {
        let services = self.services.lock();
        let clients = services.clients.iter().enumerate();
        let clients = clients.filter(|(_, c)| !c.gone && is_there(&c.location));
        let clients = clients.map(|(index, _)| (ServiceEndKind::Client, index));
        let servers = services.servers.iter().enumerate();
        let servers = servers.filter(|(_, s)| !s.gone && is_there(&s.location));
        clients
            .chain(servers.map(|(index, _)| (ServiceEndKind::Server, index)))
            .collect()
    }

    /// Removes a random client or server of a process.
    pub(crate) fn remove_random_service(&self, process: usize) {
        let living = self.ends_of(|location| location.process == process);
        if living.is_empty() {
            return;
        }
        let which = self.schedule.lock().random.usize(0..living.len());
        let (kind, index) = living[which];
        self.remove_end(kind, index);
    }

    /// Removes the clients and servers of a node.
    pub(crate) fn remove_services_of(&self, process: usize, node: pteros_runtime::graph::NodeKey) {
        let ends = self.ends_of(|location| location.process == process && location.node == node);
        for (kind, index) in ends {
            self.remove_end(kind, index);
        }
    }

    /// Marks the clients and servers of a dead process as gone.
    pub(crate) fn mark_services_gone(&self, process: usize) {
        let dead = self.ends_of(|location| location.process == process);
        let mut services = self.services.lock();
        for (kind, index) in dead {
            match kind {
                ServiceEndKind::Client => services.clients[index].gone = true,
                ServiceEndKind::Server => services.servers[index].gone = true,
            }
        }
    }

    fn remove_end(&self, kind: ServiceEndKind, index: usize) {
        let mut services = self.services.lock();
        let location = match kind {
            ServiceEndKind::Client => services.clients[index].location,
            ServiceEndKind::Server => services.servers[index].location,
        };
        let Some(core) = self.core(location.process) else {
            return;
        };
        let guids = match kind {
            ServiceEndKind::Client => {
                let record = &mut services.clients[index];
                record.gone = true;
                let guids = [record.end.requests().guid(), record.end.replies().data.guid];
                match &*record.end {
                    ClientEnd::Engine(client) => core.remove_service_client(client),
                    ClientEnd::Cyclone(client) => {
                        core.remove_writer(&client.end.writer);
                        core.remove_reader(&client.end.reader);
                    }
                }
                guids
            }
            ServiceEndKind::Server => {
                let record = &mut services.servers[index];
                record.gone = true;
                let (reader, writer) = (record.end.requests(), record.end.replies());
                let guids = [writer.guid(), reader.data.guid];
                match &*record.end {
                    ServerEnd::Engine(server) => core.remove_service_server(server),
                    ServerEnd::Cyclone(end) => {
                        core.remove_reader(&end.reader);
                        core.remove_writer(&end.writer);
                    }
                }
                guids
            }
        };
        drop(services);
        for guid in guids {
            core.detach_endpoint(location.node, guid);
        }
        self.trace_line(format_args!("removed {kind:?} {index}"));
        self.drain_ready(location.process);
    }

    /// The process of a client or server.
    pub(crate) fn process_of_end(&self, kind: ServiceEndKind, index: usize) -> usize {
        let services = self.services.lock();
        match kind {
            ServiceEndKind::Client => services.clients[index].location.process,
            ServiceEndKind::Server => services.servers[index].location.process,
        }
    }

    /// Request and reply endpoints of living clients and servers: location, reader,
    /// writer.
    pub(crate) fn service_endpoints(&self) -> Vec<(EndpointLocation, Guid, Guid)> {
        let services = self.services.lock();
        let clients = services.clients.iter().filter(|c| !c.gone);
        let clients = clients.map(|c| {
            let end = &c.end;
            (c.location, end.replies().data.guid, end.requests().guid())
        });
        let servers = services.servers.iter().filter(|s| !s.gone);
        let servers = servers.map(|s| {
            let end = &s.end;
            (s.location, end.requests().data.guid, end.replies().guid())
        });
        clients.chain(servers).collect()
    }
}
