//! Random writers and readers that come and go.

use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Liveliness};
use pteros_rtps::time::Duration;
use pteros_runtime::EndpointSpec;
use pteros_runtime::flow_controller::AsyncPublishMode;
use pteros_runtime::reader::DeliveryForm;

use super::generators::{FLOW_CONTROLLER, filter_bound};
use super::message::Message;
use super::model::records::{
    EndpointLocation, ReaderRecord, ReadySource, ReadyTask, SilenceCounter, WriterRecord,
};
use super::plan::random_qos;
use super::schedule::SimEvent;
use super::world::GraphWorld;
use crate::harness::options::Fault;

const MILLI: u64 = 1_000_000;

/// Maximum endpoints of one process, so that churn does not grow it for ever.
const ENDPOINTS_MAX: usize = 12;

impl GraphWorld {
    /// Removes a random writer, reader, client or server of a process.
    pub fn remove_random_endpoint(&self, process: usize) {
        if self.plan.services && self.schedule.lock().random.bool() {
            return self.remove_random_service(process);
        }
        let is_there = |location: &EndpointLocation| location.process == process;
        let living = self.model.lock().living_endpoints(is_there);
        if living.is_empty() {
            return;
        }
        let index = self.schedule.lock().random.usize(0..living.len());
        self.remove(living[index]);
    }

    pub fn remove(&self, guid: Guid) {
        let found = self.model.lock().by_guid.get(&guid).copied();
        let Some(index) = found else { return };
        if guid.entity.is_writer() {
            self.end_set_of(index);
        }
        let location = if guid.entity.is_writer() {
            let mut model = self.model.lock();
            model.record_removal(index);
            let record = &mut model.writers[index];
            record.gone = true;
            record.location
        } else {
            let record = &mut self.model.lock().readers[index];
            record.gone = true;
            record.location
        };
        let Some(core) = self.sim.core(location.process) else {
            return;
        };
        core.discovery().detach_endpoint(location.node, guid);
        if guid.entity.is_writer() {
            let endpoint = self.model.lock().writers[index].endpoint.clone();
            core.remove_writer(&endpoint);
        } else {
            let endpoint = self.model.lock().readers[index].endpoint.clone();
            core.remove_reader(&endpoint);
        }
        self.sim.trace_line(format_args!("removed {guid}"));
        self.sim.drain_ready(location.process);
    }

    /// Adds a random writer, reader, client or server, up to a maximum.
    pub fn add_random_endpoint(&self, process: usize) {
        if self.is_cyclone(process)
            || self.plan.services && self.schedule.lock().random.u8(0..3) == 0
        {
            return self.add_random_service(process);
        }
        let is_there = |location: &EndpointLocation| location.process == process;
        let living = self.model.lock().living_endpoints(is_there).len();
        if living >= ENDPOINTS_MAX {
            return;
        }
        let mut schedule = self.schedule.lock();
        let is_writer = schedule.random.bool();
        let topic = schedule.random.usize(0..self.plan.topics);
        let odd = schedule.random.u8(0..40) == 0;
        let spec = EndpointSpec {
            topic: format!("rt/sim{topic}"),
            type_name: format!("sim::msg::dds_::T{}_", if odd { 99 } else { topic }),
            qos: random_qos(&mut schedule.random, is_writer),
            ..EndpointSpec::default()
        };
        drop(schedule);
        let spec = self.with_random_extensions(
            EndpointSpec {
                qos: self.with_plan_limits(spec.qos, is_writer),
                ..spec
            },
            is_writer,
        );
        let spec = self.with_random_presentation(spec, is_writer);
        if is_writer {
            self.add_writer(process, spec)
        } else {
            self.add_reader(process, spec);
        }
    }

    /// The policies with the limits and deadlines that the plan adds.
    fn with_plan_limits(&self, mut qos: EndpointQos, is_writer: bool) -> EndpointQos {
        if self.plan.has(Fault::SmallLimits) && qos.history == History::KeepAll {
            let limit = self.schedule.lock().random.u32(2..12);
            qos.resource_limits.max_samples = Some(limit);
        }
        if self.plan.manual_liveliness && is_writer {
            let lease = self.schedule.lock().random.i64(300..2_000);
            qos.liveliness = Liveliness::ManualByParticipant;
            qos.lease_duration = Duration::from_millis(lease);
        }
        if self.plan.with_deadlines && (is_writer || self.schedule.lock().random.u8(0..4) > 0) {
            let span = if is_writer { 50..300 } else { 300..1_500 };
            let span = self.schedule.lock().random.i64(span);
            qos.deadline = Duration::from_millis(span);
        }
        qos
    }

    /// The location of a new endpoint: the newest node of a process.
    pub fn location(&self, process: usize) -> Option<EndpointLocation> {
        let processes = self.sim.processes();
        let running = processes[process].running.as_ref()?;
        Some(EndpointLocation {
            process,
            incarnation: processes[process].incarnations,
            node: running.nodes.last()?.0,
        })
    }

    fn add_writer(&self, process: usize, mut spec: EndpointSpec) {
        let (Some(core), Some(location)) = (self.sim.core(process), self.location(process)) else {
            return;
        };
        let Some(queue) = self.sim.queue(process) else {
            return;
        };
        let flows = self.plan.flow_controlled && self.schedule.lock().random.bool();
        let flow_controlled = flows || spec.qos.latency_budget > Duration::ZERO;
        let keyed = self.plan.keyed;
        let group = self.random_group(location);
        spec.group = group.map(|group| self.model.lock().groups[group].engine.clone());
        let made = if flows {
            core.create_flow_controlled_writer(spec, &AsyncPublishMode::new(FLOW_CONTROLLER))
        } else {
            core.create_writer(spec)
        };
        let endpoint = match made {
            Ok(endpoint) => endpoint,
            Err(error) => return self.fail(format!("I11 p{process}: no writer: {error}")),
        };
        let mut schedule = self.schedule.lock();
        let large = schedule.random.u8(0..12) == 0;
        let bytes = if large {
            schedule.random.usize(1_000..100_000)
        } else {
            schedule.random.usize(16..300)
        };
        let now = self.sim.now();
        let mut model = self.model.lock();
        let index = model.writers.len();
        schedule.add(now + self.plan.period, SimEvent::Publish(index));
        let data = &endpoint.data;
        let manual = data.qos.liveliness != Liveliness::Automatic;
        if manual && !data.qos.lease_duration.is_infinite() {
            schedule.add(now + 100 * MILLI, SimEvent::Assert(index));
        }
        drop(schedule);
        let task = ReadyTask::task(ReadySource::WriterEvents(index), &self.ready_sources);
        endpoint.events.slot.set_task(Arc::downgrade(&task));
        let slot = endpoint.clone();
        model.by_guid.insert(data.guid, index);
        core.discovery().attach_endpoint(location.node, data);
        let line = format!(
            "w{index} {} {:?} at p{process}",
            data.guid,
            qos_summary(&data.qos)
        );
        let topic = data.topic.clone();
        model.writers.push(WriterRecord {
            location,
            endpoint,
            _tasks: vec![task],
            gone: false,
            created_at: now,
            stalled: Default::default(),
            resumed: Default::default(),
            unacknowledged: Default::default(),
            written: 0,
            bytes,
            peers: Default::default(),
            deadline: SilenceCounter::default(),
            liveliness: SilenceCounter {
                since: (manual).then_some(now),
                ..SilenceCounter::default()
            },
            incompatible_peers: Default::default(),
            times: Vec::new(),
            ends: Default::default(),
            flow_controlled,
            keyed,
            group,
            in_set: Default::default(),
            set_ends: Default::default(),
            orders: Vec::new(),
        });
        drop(model);
        self.sim.trace_line(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events.slot.attach(Some(queue), || !events.is_empty());
        self.sim.drain_ready(process);
    }

    /// Adds a reader and returns its index.
    pub fn add_reader(&self, process: usize, spec: EndpointSpec) -> Option<usize> {
        let (core, location) = (self.sim.core(process)?, self.location(process)?);
        let queue = self.sim.queue(process)?;
        let mut schedule = self.schedule.lock();
        let wants = if schedule.random.bool() {
            DeliveryForm::Bytes
        } else {
            DeliveryForm::Type(Message::rust_type())
        };
        let slow = self.plan.has(Fault::SlowReader) && schedule.random.bool() && !schedule.healed;
        let read_delay = if slow {
            schedule.random.u64(0..300 * MILLI)
        } else {
            0
        };
        drop(schedule);
        let below = filter_bound(&spec);
        let endpoint = match core.create_reader(spec, wants, false) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                self.fail(format!("I11 p{process}: no reader: {error}"));
                return None;
            }
        };
        let mut model = self.model.lock();
        let index = model.readers.len();
        let task = |ready| ReadyTask::task(ready, &self.ready_sources);
        let events = task(ReadySource::ReaderEvents(index));
        let samples = task(ReadySource::Samples(index));
        endpoint.events.slot.set_task(Arc::downgrade(&events));
        endpoint.slot.set_task(Arc::downgrade(&samples));
        let slot = endpoint.clone();
        let data = &endpoint.data;
        model.by_guid.insert(data.guid, index);
        core.discovery().attach_endpoint(location.node, data);
        let line = format!(
            "r{index} {} {:?} at p{process}",
            data.guid,
            qos_summary(&data.qos)
        );
        let topic = data.topic.clone();
        model.readers.push(ReaderRecord {
            location,
            endpoint,
            _tasks: vec![events, samples],
            gone: false,
            read_delay,
            peers: Default::default(),
            filter_below: below,
            orders: Default::default(),
            samples: Default::default(),
            progress: Default::default(),
            taken: 0,
            attacker_samples: 0,
            lost: 0,
            lost_at: 0,
            deadline: SilenceCounter::default(),
            unsure: false,
            alive: (0, 0),
            incompatible_peers: Default::default(),
            created_at: self.sim.now(),
            last_activity: self.sim.now(),
            received: 0,
        });
        drop(model);
        self.sim.trace_line(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events
            .slot
            .attach(Some(queue.clone()), || !events.is_empty());
        slot.slot.attach(Some(queue), || slot.has_samples());
        self.sim.drain_ready(process);
        Some(index)
    }
}

/// A short text of the policies that matter in traces.
fn qos_summary(qos: &EndpointQos) -> String {
    let mut text = format!(
        "{:?} {:?} {:?}",
        qos.reliability, qos.durability, qos.history
    );
    if let Some(max) = qos.resource_limits.max_samples {
        text += &format!(" max {max}");
    }
    let spans = [
        ("deadline", qos.deadline),
        ("lifespan", qos.lifespan),
        ("lease", qos.lease_duration),
    ];
    for (name, span) in spans {
        if span != Duration::INFINITE {
            text += &format!(" {name} {} ms", span.as_nanos() / 1_000_000);
        }
    }
    if qos.liveliness != Liveliness::Automatic {
        text += &format!(" {:?}", qos.liveliness);
    }
    text
}
