//! Service clients and servers that come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Reliability};
use pteros_runtime::EndpointSpec;
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::ReadySlot;
use pteros_runtime::service::ServiceSpec;
use pteros_runtime::writer::WriterEndpoint;

use super::cyclone_header::{CycloneClient, CycloneEnd};
use super::records::{
    ClientEnd, ClientRecord, ENDS_MAX, EndRecord, SERVICES, ServerEnd, ServerRecord, ServiceEndKind,
};
use crate::world::graph::message::Message;
use crate::world::graph::model::records::{EndpointLocation, ReadySource, ReadyTask};
use crate::world::graph::schedule::SimEvent;
use crate::world::graph::world::GraphWorld;

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
        type_hash: None,
    }
}

impl GraphWorld {
    /// Adds a client or server of a random service, up to a maximum.
    pub fn add_random_service(&self, process: usize) {
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
    pub fn add_end(
        &self,
        process: usize,
        kind: ServiceEndKind,
        service: usize,
        keeps_all: bool,
    ) -> Option<usize> {
        let (core, location) = (self.sim.core(process)?, self.location(process)?);
        let wants = if self.schedule.lock().random.bool() {
            DeliveryForm::Bytes
        } else {
            DeliveryForm::Type(Message::rust_type())
        };
        let spec = spec(service, keeps_all);
        let is_cyclone = self.is_cyclone(process);
        let mut services = self.services.lock();
        let base = |ready, writer: &Arc<WriterEndpoint>, reader: &Arc<ReaderEndpoint>| EndRecord {
            location,
            writer: writer.clone(),
            reader: reader.clone(),
            service,
            keeps_all,
            gone: false,
            _task: ReadyTask::task(ready, &self.ready_sources),
        };
        let index = match kind {
            ServiceEndKind::Client => {
                let index = services.clients.len();
                let made = if is_cyclone {
                    CycloneClient::new(&core, spec, index as u64 + 1).map(ClientEnd::Cyclone)
                } else {
                    let made = core.create_service_client(spec, wants);
                    made.ok().map(ClientEnd::Engine)
                };
                let end = Arc::new(self.made(made, process)?);
                services.clients.push(ClientRecord {
                    base: base(ReadySource::Client(index), end.requests(), end.replies()),
                    end,
                    open: BTreeMap::new(),
                });
                let mut schedule = self.schedule.lock();
                if !schedule.healed {
                    let at = self.sim.now() + schedule.around(2 * self.plan.period);
                    schedule.add(at, SimEvent::Call(index));
                }
                index
            }
            ServiceEndKind::Server => {
                let index = services.servers.len();
                let made = if is_cyclone {
                    let id = format!("serviceid={index:x};");
                    CycloneEnd::new(&core, spec.replies, spec.requests, &id).map(ServerEnd::Cyclone)
                } else {
                    let made = core.create_service_server(spec, wants);
                    made.ok().map(ServerEnd::Engine)
                };
                let end = Arc::new(self.made(made, process)?);
                for guid in [end.replies().guid(), end.requests().data.guid] {
                    services.by_guid.insert(guid, index);
                }
                services.servers.push(ServerRecord {
                    base: base(ReadySource::Server(index), end.replies(), end.requests()),
                    end,
                    pending: Vec::new(),
                    taken: BTreeSet::new(),
                    answered: BTreeSet::new(),
                    ignored: BTreeSet::new(),
                });
                index
            }
        };
        let record = services.record(kind, index);
        let (writer, reader) = (record.writer.clone(), record.reader.clone());
        let ready = record._task.clone();
        drop(services);
        core.discovery()
            .attach_endpoint(location.node, &writer.data);
        core.discovery()
            .attach_endpoint(location.node, &reader.data);
        self.sim.trace_line(format_args!(
            "new {kind:?} {index} of service {service} at p{process}: {} {}, all {keeps_all}",
            writer.guid(),
            reader.data.guid
        ));
        let queue = self.sim.queue(process)?;
        for slot in [&writer.events.slot, &reader.events.slot, &reader.slot] {
            slot.set_task(Arc::downgrade(&ready));
        }
        let has_events = |events: &EndpointEvents| !events.is_empty();
        let attach = |slot: &ReadySlot, pending: bool| {
            slot.attach(Some(queue.clone()), || pending);
        };
        attach(&writer.events.slot, has_events(&writer.events));
        attach(&reader.events.slot, has_events(&reader.events));
        attach(&reader.slot, reader.has_samples());
        self.sim.drain_ready(process);
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
        let there = services
            .living()
            .filter(|(.., record)| is_there(&record.location));
        there.map(|(kind, index, _)| (kind, index)).collect()
    }

    /// Removes a random client or server of a process.
    pub fn remove_random_service(&self, process: usize) {
        let living = self.ends_of(|location| location.process == process);
        if living.is_empty() {
            return;
        }
        let which = self.schedule.lock().random.usize(0..living.len());
        let (kind, index) = living[which];
        self.remove_end(kind, index);
    }

    /// Removes the clients and servers of a node.
    pub fn remove_services_of(&self, process: usize, node: NodeKey) {
        let ends = self.ends_of(|location| location.process == process && location.node == node);
        for (kind, index) in ends {
            self.remove_end(kind, index);
        }
    }

    /// Marks the clients and servers of a dead process as gone.
    pub fn mark_services_gone(&self, process: usize) {
        let dead = self.ends_of(|location| location.process == process);
        let mut services = self.services.lock();
        for (kind, index) in dead {
            services.record(kind, index).gone = true;
        }
    }

    fn remove_end(&self, kind: ServiceEndKind, index: usize) {
        let mut services = self.services.lock();
        let record = services.record(kind, index);
        let location = record.location;
        let Some(core) = self.sim.core(location.process) else {
            return;
        };
        record.gone = true;
        let (writer, reader) = (record.writer.clone(), record.reader.clone());
        match kind {
            ServiceEndKind::Client => match &*services.clients[index].end {
                ClientEnd::Engine(client) => core.remove_service_client(client),
                ClientEnd::Cyclone(_) => {
                    core.remove_writer(&writer);
                    core.remove_reader(&reader);
                }
            },
            ServiceEndKind::Server => match &*services.servers[index].end {
                ServerEnd::Engine(server) => core.remove_service_server(server),
                ServerEnd::Cyclone(_) => {
                    core.remove_reader(&reader);
                    core.remove_writer(&writer);
                }
            },
        }
        drop(services);
        for guid in [writer.guid(), reader.data.guid] {
            core.discovery().detach_endpoint(location.node, guid);
        }
        self.sim
            .trace_line(format_args!("removed {kind:?} {index}"));
        self.sim.drain_ready(location.process);
    }

    /// The process of a client or server.
    pub fn process_of_end(&self, kind: ServiceEndKind, index: usize) -> usize {
        self.services.lock().record(kind, index).location.process
    }

    /// Request and reply endpoints of living clients and servers: location, reader,
    /// writer.
    pub fn service_endpoints(&self) -> Vec<(EndpointLocation, Guid, Guid)> {
        let services = self.services.lock();
        let guids = |record: &EndRecord| {
            let (reader, writer) = (record.reader.data.guid, record.writer.guid());
            (record.location, reader, writer)
        };
        services
            .living()
            .map(|(.., record)| guids(record))
            .collect()
    }
}
