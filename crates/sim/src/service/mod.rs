//! Services in a graph: clients that call, some impatient; servers that answer
//! at once, later or never; ends that come, go and die with their processes.
//!
//! I13 (`rules.rs`): a call that was accepted ends once, with its own reply or
//! an error that its client sees.

mod calls;
mod headed;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rmw::error::PublishError;
use pteros_rmw::event::Events;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::ready::Task;
use pteros_rmw::sample::Item;
use pteros_rmw::service::{
    CallId, RequestId, SendError, ServiceClient, ServiceServer, ServiceSpec,
};
use pteros_rmw::writer::WriterEndpoint;
use pteros_rmw::{Core, EndpointSpec};
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Reliability};

use crate::cast::{Home, Mark, Ready};
use crate::message::Message;
use crate::script::Step;
use crate::world::World;
pub(crate) use headed::disguise;
use headed::{End, Head, HeadedClient};

const MILLI: u64 = 1_000_000;

/// Names of clients and servers in messages, apart from those of writers.
const CLIENT: u32 = 1 << 30;
const SERVER: u32 = 1 << 31;

/// Bytes of a request and of a reply, about.
const BYTES: usize = 40;

/// Ends of services that one process may have.
const ENDS_MAX: usize = 4;

/// Services that there are.
const SERVICES: usize = 2;

/// What an end is made of.
enum Asker {
    Engine(ServiceClient),
    Headed(HeadedClient),
}

enum Replier {
    Engine(ServiceServer),
    Headed(End),
}

/// How a client knows a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Engine(CallId),
    Headed(i64),
}

/// How a server knows a request.
enum Asked {
    Engine(RequestId),
    Headed(Head),
}

/// A client.
pub(crate) struct ClientRole {
    home: Home,
    asker: Arc<Asker>,
    service: usize,
    keeps_all: bool,
    _task: Arc<dyn Task>,
    gone: bool,
    /// Its calls that have not ended.
    open: BTreeMap<Key, usize>,
}

/// A server.
pub(crate) struct ServerRole {
    home: Home,
    replier: Arc<Replier>,
    service: usize,
    keeps_all: bool,
    _task: Arc<dyn Task>,
    gone: bool,
    /// Requests that are answered later, and their calls.
    pending: Vec<(usize, Asked)>,
    /// Calls that it took, that it has answered, and that it never will.
    taken: BTreeSet<usize>,
    answered: BTreeSet<usize>,
    ignored: BTreeSet<usize>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Answered,
    ServerGone,
    TimedOut,
    Refused,
    /// A stranger said something.
    Haunted,
}

/// One call.
pub(crate) struct CallRole {
    client: usize,
    key: Option<Key>,
    /// Listeners of the servers that were there.
    asked: Vec<Guid>,
    ending: Option<Ending>,
}

/// Everybody who asks or answers.
#[derive(Default)]
pub(crate) struct Services {
    clients: Vec<ClientRole>,
    servers: Vec<ServerRole>,
    calls: Vec<CallRole>,
    /// Endpoints of servers, as clients know them.
    by_guid: BTreeMap<Guid, usize>,
    /// Ends of matches: who was told, of whom.
    breaks: BTreeSet<(Guid, Guid)>,
    /// Calls that got a reply.
    answered: u64,
}

impl Asker {
    fn requests(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(client) => &client.requests,
            Self::Headed(client) => &client.end.speaks,
        }
    }

    fn replies(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(client) => &client.replies,
            Self::Headed(client) => &client.end.hears,
        }
    }

    fn server_count(&self, core: &Core) -> usize {
        match self {
            Self::Engine(client) => client.server_count(core),
            Self::Headed(client) => client.end.peers().len(),
        }
    }

    fn send(&self, core: &Core, message: &mut Message) -> Result<Key, SendError> {
        match self {
            Self::Engine(client) => client.send(core, message, core.env.wall()).map(Key::Engine),
            Self::Headed(_) if self.server_count(core) == 0 => Err(SendError::NoServer),
            Self::Headed(client) => Ok(client.send(core, message).map(Key::Headed)?),
        }
    }

    fn take(&self, core: &Core) -> Option<(Key, Item)> {
        match self {
            Self::Engine(client) => {
                let reply = client.take_reply(core)?;
                Some((Key::Engine(reply.call), reply.item))
            }
            Self::Headed(client) => {
                let (sequence, item) = client.take(core)?;
                Some((Key::Headed(sequence), item))
            }
        }
    }

    /// Calls whose servers are all gone, which have ended thereby. Who speaks
    /// Cyclone's dialect has nothing of the kind.
    fn end_abandoned(&self) -> Vec<Key> {
        match self {
            Self::Engine(client) => {
                let ended = client.end_abandoned().into_iter();
                ended.map(Key::Engine).collect()
            }
            Self::Headed(_) => Vec::new(),
        }
    }
}

impl Replier {
    fn requests(&self) -> &Arc<ReaderEndpoint> {
        match self {
            Self::Engine(server) => &server.requests,
            Self::Headed(end) => &end.hears,
        }
    }

    fn replies(&self) -> &Arc<WriterEndpoint> {
        match self {
            Self::Engine(server) => &server.replies,
            Self::Headed(end) => &end.speaks,
        }
    }

    fn take(&self, core: &Core) -> Option<(Asked, Item)> {
        match self {
            Self::Engine(server) => {
                let request = server.take_request(core)?;
                Some((Asked::Engine(request.id), request.item))
            }
            Self::Headed(end) => {
                let (head, item) = end.take(core)?;
                Some((Asked::Headed(head), item))
            }
        }
    }

    fn reply(&self, core: &Core, asked: &Asked, message: &mut Message) -> Result<(), PublishError> {
        match (self, asked) {
            (Self::Engine(server), Asked::Engine(id)) => server.reply(core, id, message),
            (Self::Headed(end), Asked::Headed(head)) => end.send(core, *head, message),
            _ => Ok(()),
        }
    }
}

/// An end that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Asks.
    Client,
    /// Answers.
    Server,
}

/// A writer and a reader of a service, by topic and type.
fn spec(service: usize, keeps_all: bool) -> ServiceSpec {
    let end = |prefix: &str, part: &str| EndpointSpec {
        topic: format!("{prefix}/sim{service}{part}"),
        type_name: format!("sim::srv::dds_::S{service}_{part}_"),
        qos: EndpointQos {
            reliability: Reliability::Reliable,
            history: match keeps_all {
                true => History::KeepAll,
                // ROS 2's default for services.
                false => History::KeepLast(10),
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

impl World {
    /// Whether a process speaks Cyclone's dialect, and is taken for it. It has
    /// services only.
    pub(crate) fn is_foreign(&self, place: usize) -> bool {
        self.plan.foreign && place == 0
    }

    /// A process gets an end of some service, unless it has many.
    pub(crate) fn grow_service(&self, place: usize) {
        let living = self.ends_of(|home| home.place == place);
        if living.len() >= ENDS_MAX {
            return;
        }
        let mut script = self.script.lock();
        let service = script.random.usize(0..SERVICES);
        let keeps_all = script.random.bool();
        let kind = match script.random.bool() {
            true => Kind::Client,
            false => Kind::Server,
        };
        drop(script);
        self.add_end(place, kind, service, keeps_all);
    }

    /// Adds a client or a server; its number among its kind.
    fn add_end(&self, place: usize, kind: Kind, service: usize, keeps_all: bool) -> Option<usize> {
        let (core, home) = (self.core(place)?, self.home(place)?);
        let wants = match self.script.lock().random.bool() {
            true => Wants::Bytes,
            false => Wants::Type(Message::rust_type()),
        };
        let spec = spec(service, keeps_all);
        let is_foreign = self.is_foreign(place);
        let mut services = self.services.lock();
        let task = |ready| -> Arc<dyn Task> {
            Arc::new(Mark {
                ready,
                marks: self.marks.clone(),
            })
        };
        let (index, ready, speaks, hears);
        match kind {
            Kind::Client => {
                index = services.clients.len();
                let made = match is_foreign {
                    false => core
                        .create_service_client(spec, wants)
                        .ok()
                        .map(Asker::Engine),
                    true => HeadedClient::new(&core, spec, index as u64 + 1).map(Asker::Headed),
                };
                let asker = Arc::new(self.made(made, place)?);
                ready = task(Ready::Client(index));
                (speaks, hears) = (asker.requests().clone(), asker.replies().clone());
                services.clients.push(ClientRole {
                    home,
                    asker,
                    service,
                    keeps_all,
                    _task: ready.clone(),
                    gone: false,
                    open: BTreeMap::new(),
                });
                let mut script = self.script.lock();
                if !script.healed {
                    let at = self.now() + script.around(2 * self.plan.period);
                    script.plan(at, Step::Call(index));
                }
            }
            Kind::Server => {
                index = services.servers.len();
                let made = match is_foreign {
                    false => core
                        .create_service_server(spec, wants)
                        .ok()
                        .map(Replier::Engine),
                    true => {
                        let id = format!("serviceid={index:x};");
                        End::new(&core, (spec.replies, spec.requests), &id).map(Replier::Headed)
                    }
                };
                let replier = Arc::new(self.made(made, place)?);
                ready = task(Ready::Server(index));
                (speaks, hears) = (replier.replies().clone(), replier.requests().clone());
                services.by_guid.insert(speaks.guid(), index);
                services.by_guid.insert(hears.data.guid, index);
                services.servers.push(ServerRole {
                    home,
                    replier,
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
        core.attach_endpoint(home.node, &speaks.data);
        core.attach_endpoint(home.node, &hears.data);
        self.say(format_args!(
            "new {kind:?} {index} of service {service} at p{place}: {} {}, all {keeps_all}",
            speaks.guid(),
            hears.data.guid
        ));
        let queue = self.queue(place)?;
        for slot in [&speaks.events.slot, &hears.events.slot, &hears.slot] {
            slot.set_task(Arc::downgrade(&ready));
        }
        let has_events = |events: &Events| !events.is_empty();
        let attach = |slot: &pteros_rmw::ready::Slot, pending: bool| {
            slot.attach(Some(queue.clone()), || pending);
        };
        attach(&speaks.events.slot, has_events(&speaks.events));
        attach(&hears.events.slot, has_events(&hears.events));
        attach(&hears.slot, hears.has_samples());
        self.settle(place);
        Some(index)
    }

    fn made<T>(&self, made: Option<T>, place: usize) -> Option<T> {
        if made.is_none() {
            self.fail(format!("I11 p{place}: no end of a service"));
        }
        made
    }

    /// The ends that live at some home.
    fn ends_of(&self, is_there: impl Fn(&Home) -> bool) -> Vec<(Kind, usize)> {
        let services = self.services.lock();
        let clients = services.clients.iter().enumerate();
        let clients = clients.filter(|(_, c)| !c.gone && is_there(&c.home));
        let clients = clients.map(|(index, _)| (Kind::Client, index));
        let servers = services.servers.iter().enumerate();
        let servers = servers.filter(|(_, s)| !s.gone && is_there(&s.home));
        clients
            .chain(servers.map(|(index, _)| (Kind::Server, index)))
            .collect()
    }

    /// One end of a process's services goes, if it has any.
    pub(crate) fn shrink_service(&self, place: usize) {
        let living = self.ends_of(|home| home.place == place);
        if living.is_empty() {
            return;
        }
        let which = self.script.lock().random.usize(0..living.len());
        self.remove_end(living[which]);
    }

    /// A node goes with its ends.
    pub(crate) fn remove_services_of(&self, place: usize, node: pteros_rmw::graph::NodeKey) {
        for end in self.ends_of(|home| home.place == place && home.node == node) {
            self.remove_end(end);
        }
    }

    /// A process is no more.
    pub(crate) fn bury_services(&self, place: usize) {
        let dead = self.ends_of(|home| home.place == place);
        let mut services = self.services.lock();
        for (kind, index) in dead {
            match kind {
                Kind::Client => services.clients[index].gone = true,
                Kind::Server => services.servers[index].gone = true,
            }
        }
    }

    fn remove_end(&self, (kind, index): (Kind, usize)) {
        let mut services = self.services.lock();
        let home = match kind {
            Kind::Client => services.clients[index].home,
            Kind::Server => services.servers[index].home,
        };
        let Some(core) = self.core(home.place) else {
            return;
        };
        let guids = match kind {
            Kind::Client => {
                let role = &mut services.clients[index];
                role.gone = true;
                let guids = [role.asker.requests().guid(), role.asker.replies().data.guid];
                match &*role.asker {
                    Asker::Engine(client) => core.remove_service_client(client),
                    Asker::Headed(client) => {
                        core.remove_writer(&client.end.speaks);
                        core.remove_reader(&client.end.hears);
                    }
                }
                guids
            }
            Kind::Server => {
                let role = &mut services.servers[index];
                role.gone = true;
                let (hears, speaks) = (role.replier.requests(), role.replier.replies());
                let guids = [speaks.guid(), hears.data.guid];
                match &*role.replier {
                    Replier::Engine(server) => core.remove_service_server(server),
                    Replier::Headed(end) => {
                        core.remove_reader(&end.hears);
                        core.remove_writer(&end.speaks);
                    }
                }
                guids
            }
        };
        drop(services);
        for guid in guids {
            core.detach_endpoint(home.node, guid);
        }
        self.say(format_args!("removed {kind:?} {index}"));
        self.settle(home.place);
    }

    /// Where an end lives.
    pub(crate) fn home_of_end(&self, kind: Kind, index: usize) -> usize {
        let services = self.services.lock();
        match kind {
            Kind::Client => services.clients[index].home.place,
            Kind::Server => services.servers[index].home.place,
        }
    }

    /// Endpoints of living ends, by home, readers and writers apart.
    pub(crate) fn service_endpoints(&self) -> Vec<(Home, Guid, Guid)> {
        let services = self.services.lock();
        let clients = services.clients.iter().filter(|c| !c.gone);
        let clients = clients.map(|c| {
            let asker = &c.asker;
            (c.home, asker.replies().data.guid, asker.requests().guid())
        });
        let servers = services.servers.iter().filter(|s| !s.gone);
        let servers = servers.map(|s| {
            let replier = &s.replier;
            (
                s.home,
                replier.requests().data.guid,
                replier.replies().guid(),
            )
        });
        clients.chain(servers).collect()
    }
}
