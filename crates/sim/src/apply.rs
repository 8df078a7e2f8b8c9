//! Applies simulator events to the engine, and collects the engine's reports.
//!
//! Each [`SimEvent`] of the schedule is an action of a user (publish, take, create
//! an endpoint) or an injected fault (crash, pause, clock jump).

use std::sync::{Arc, Weak};

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::time::Duration;
use pteros_runtime::EndpointSpec;
use pteros_runtime::error::PublishError;
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::flow_controller::AsyncPublishMode;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::ready_queue::Task;

use crate::generators::{FLOW_CONTROLLER, filter_bound};
use crate::message::Message;
use crate::model::{
    EndpointLocation, ReaderRecord, ReadySource, ReadyTask, SilenceCounter, WriterRecord,
};
use crate::plan::{Fault, random_qos};
use crate::schedule::SimEvent;
use crate::world::SimWorld;

const MILLI: u64 = 1_000_000;

/// Maximum endpoints of one process, so that churn does not grow it for ever.
const ENDPOINTS_MAX: usize = 12;

impl SimWorld {
    /// Schedules the process starts and the first fault of each kind.
    pub fn open(&self) {
        let mut schedule = self.schedule.lock();
        let now = self.now();
        for process in 0..self.plan.hosts.len() {
            let at = now + schedule.random.u64(0..2_000 * MILLI);
            schedule.add(at, SimEvent::Start(process));
        }
        let processes = self.plan.hosts.len();
        let mut first = |fault: Fault, event: SimEvent, within: u64| {
            if self.plan.has(fault) {
                let at = now + schedule.random.u64(0..within * MILLI);
                schedule.add(at, event);
            }
        };
        for process in 0..processes {
            first(Fault::Crash, SimEvent::Crash(process), 12_000);
            first(Fault::Pause, SimEvent::Pause(process, 0), 6_000);
            first(Fault::Churn, SimEvent::Churn(process), 6_000);
            first(Fault::WallClock, SimEvent::JumpWallClock(process), 5_000);
            first(
                Fault::OneWayOutage,
                SimEvent::StartOneWayOutage(process),
                4_000,
            );
        }
        first(Fault::Attack, SimEvent::Attack, 3_000);
        drop(schedule);
        let disturbs = [Fault::Cut, Fault::Stall, Fault::Mtu, Fault::SocketFull];
        if disturbs.iter().any(|fault| self.plan.has(*fault)) {
            self.schedule.lock().add(now, SimEvent::ChangeNetworkFault);
        }
        let mut network = self.network();
        for from in 0..processes {
            for to in 0..processes {
                let same = self.plan.hosts[from] == self.plan.hosts[to];
                let mut link = self.plan.link;
                if same {
                    link.delay /= 100;
                    link.jitter /= 100;
                }
                *network.link_mut(from, to) = link;
            }
        }
    }

    /// Ends fault injection. From here on only pending reads and replies continue.
    pub fn heal(&self) {
        self.end_sets();
        self.trace_line(format_args!("healed"));
        self.schedule.lock().healed = true;
        let mut network = self.network();
        network.send_full_rate = 0;
        network.connection_fault_rate = 0;
        for link in network.links_mut() {
            *link = crate::network::Link::perfect(300_000);
        }
        for socket in &mut network.sockets {
            socket.buffer_bytes = 8 << 20;
        }
        drop(network);
        let mut model = self.model.lock();
        model.healed = true;
        for reader in &mut model.readers {
            reader.read_delay = 0;
        }
    }

    /// Applies an event.
    pub fn apply(&self, event: SimEvent) {
        let healed = self.schedule.lock().healed;
        let goes_on = matches!(
            event,
            SimEvent::Take(_)
                | SimEvent::Resume(_)
                | SimEvent::AbandonCall(_)
                | SimEvent::TakeReplies(_)
                | SimEvent::TakeRequests(_)
                | SimEvent::Reply(_)
        );
        if healed && !goes_on {
            return;
        }
        if self.is_deferred(event) {
            let at = self.now() + 2 * MILLI;
            self.schedule.lock().add(at, event);
            return;
        }
        match event {
            SimEvent::Take(_) | SimEvent::Publish(_) => {}
            of_service if self.process_of_service_event(of_service).is_some() => {}
            _ => self.trace_line(format_args!("{event:?}")),
        }
        match event {
            SimEvent::Start(process) => self.apply_start(process),
            SimEvent::Crash(process) | SimEvent::Leave(process) => self.apply_stop(process, event),
            SimEvent::Pause(process, _) => self.apply_pause(process),
            SimEvent::Resume(process) => self.poll_process(process),
            SimEvent::Churn(process) => self.apply_churn(process),
            SimEvent::Publish(writer) => self.apply_publish(writer),
            SimEvent::Assert(writer) => self.apply_assert(writer),
            SimEvent::Take(reader) => self.apply_take(reader),
            SimEvent::JumpWallClock(process) => self.apply_jump(process),
            SimEvent::ChangeNetworkFault => self.change_network_fault(),
            SimEvent::Attack => self.attack(),
            SimEvent::StartOneWayOutage(process) => self.start_one_way_outage(process),
            SimEvent::EndOneWayOutage(from, to) => self.network().link_mut(from, to).cut = false,
            of_service => self.apply_service_event(of_service),
        }
    }

    /// Whether an event must wait: its process blocks in a publish, is paused, or
    /// another process blocks and this event could block as well.
    fn is_deferred(&self, event: SimEvent) -> bool {
        let process = match event {
            SimEvent::Crash(process) | SimEvent::Leave(process) | SimEvent::Pause(process, _) => {
                process
            }
            SimEvent::Churn(process) => process,
            SimEvent::Publish(writer) | SimEvent::Assert(writer) => {
                let model = self.model.lock();
                let record = &model.writers[writer];
                let waits = record.endpoint.data.qos.history == History::KeepAll;
                let process = record.location.process;
                drop(model);
                if waits && self.processes().iter().any(|p| p.blocked) {
                    return true;
                }
                process
            }
            SimEvent::Take(reader) => {
                let process = self.model.lock().readers[reader].location.process;
                return self.processes()[process].paused_until > self.now();
            }
            of_service => {
                let Some(process) = self.process_of_service_event(of_service) else {
                    return false;
                };
                // Each of these events may block until there is room in a history.
                if self.processes().iter().any(|p| p.blocked) {
                    return true;
                }
                process
            }
        };
        let processes = self.processes();
        processes[process].blocked || processes[process].paused_until > self.now()
    }

    fn apply_start(&self, process: usize) {
        if self.core(process).is_some() {
            return;
        }
        self.start(process);
        if let Some(core) = self.core(process) {
            let name = format!("n{process}");
            let key = core.add_node(&name, "/sim");
            let mut processes = self.processes();
            if let Some(running) = &mut processes[process].running {
                running.nodes.push((key, name));
            }
        }
        for _ in 0..self.plan.endpoints {
            self.add_random_endpoint(process);
        }
        self.drain_ready(process);
    }

    fn apply_stop(&self, process: usize, event: SimEvent) {
        if self.core(process).is_none() {
            let at = self.now() + 500 * MILLI;
            return self.schedule.lock().add(at, event);
        }
        let gracefully =
            event == SimEvent::Leave(process) || self.schedule.lock().random.u8(0..4) == 0;
        self.end(process, gracefully);
        self.mark_services_gone(process);
        let mut model = self.model.lock();
        for record in model
            .writers
            .iter_mut()
            .filter(|r| r.location.process == process)
        {
            record.gone = true;
        }
        for record in model
            .readers
            .iter_mut()
            .filter(|r| r.location.process == process)
        {
            record.gone = true;
        }
        drop(model);
        let mut schedule = self.schedule.lock();
        let at = self.now() + schedule.around(2_500 * MILLI);
        schedule.add(at, SimEvent::Start(process));
        let at = at + schedule.around(8_000 * MILLI);
        schedule.add(at, SimEvent::Crash(process));
    }

    fn apply_pause(&self, process: usize) {
        let mut schedule = self.schedule.lock();
        let until = self.now() + schedule.around(200 * MILLI);
        schedule.add(until, SimEvent::Resume(process));
        let next = until + schedule.around(3_000 * MILLI);
        schedule.add(next, SimEvent::Pause(process, 0));
        drop(schedule);
        let mut processes = self.processes();
        processes[process].paused_until = until;
        processes[process].was_paused = true;
    }

    fn apply_jump(&self, process: usize) {
        const SECOND: i64 = 1_000_000_000;
        let mut schedule = self.schedule.lock();
        let far = [SECOND, 3_600 * SECOND, 10 * 365 * 86_400 * SECOND];
        let jump = far[schedule.random.usize(0..3)];
        let sign = if schedule.random.bool() { 1 } else { -1 };
        let next = self.now() + schedule.around(2_000 * MILLI);
        schedule.add(next, SimEvent::JumpWallClock(process));
        drop(schedule);
        self.set_wall_offset(process, sign * jump);
    }

    fn apply_churn(&self, process: usize) {
        let (which, next) = {
            let mut schedule = self.schedule.lock();
            (schedule.random.u8(0..6), schedule.around(900 * MILLI))
        };
        let next = self.now() + next;
        self.schedule.lock().add(next, SimEvent::Churn(process));
        match which {
            0..=1 => self.add_random_endpoint(process),
            2..=3 => self.remove_random_endpoint(process),
            4 => self.add_node(process),
            _ => self.remove_random_node(process),
        }
    }

    fn add_node(&self, process: usize) {
        let Some(core) = self.core(process) else {
            return;
        };
        let count = self.processes()[process]
            .running
            .as_ref()
            .map_or(0, |l| l.nodes.len());
        if count >= 3 {
            return;
        }
        let name = format!("n{process}_{}", self.schedule.lock().random.u16(..));
        let key = core.add_node(&name, "/sim");
        if let Some(running) = &mut self.processes()[process].running {
            running.nodes.push((key, name));
        }
        self.drain_ready(process);
    }

    fn remove_random_node(&self, process: usize) {
        let node = {
            let mut processes = self.processes();
            let Some(running) = &mut processes[process].running else {
                return;
            };
            if running.nodes.len() < 2 {
                return;
            }
            running.nodes.remove(1).0
        };
        let of_node: Vec<_> = {
            let model = self.model.lock();
            let here = |location: &EndpointLocation, gone: bool| {
                location.process == process && location.node == node && !gone
            };
            let writers = model.writers.iter().filter(|r| here(&r.location, r.gone));
            let readers = model.readers.iter().filter(|r| here(&r.location, r.gone));
            let writers = writers.map(|r| r.endpoint.guid());
            writers
                .chain(readers.map(|r| r.endpoint.data.guid))
                .collect()
        };
        for guid in of_node {
            self.remove(guid);
        }
        self.remove_services_of(process, node);
        if let Some(core) = self.core(process) {
            core.remove_node(node);
        }
        self.drain_ready(process);
    }

    fn remove_random_endpoint(&self, process: usize) {
        if self.plan.services && self.schedule.lock().random.bool() {
            return self.remove_random_service(process);
        }
        let living: Vec<_> = {
            let model = self.model.lock();
            let here =
                |location: &EndpointLocation, gone: bool| location.process == process && !gone;
            let writers = model.writers.iter().filter(|r| here(&r.location, r.gone));
            let readers = model.readers.iter().filter(|r| here(&r.location, r.gone));
            let writers = writers.map(|r| r.endpoint.guid());
            writers
                .chain(readers.map(|r| r.endpoint.data.guid))
                .collect()
        };
        if living.is_empty() {
            return;
        }
        let index = self.schedule.lock().random.usize(0..living.len());
        self.remove(living[index]);
    }

    fn remove(&self, guid: pteros_rtps::id::Guid) {
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
        let Some(core) = self.core(location.process) else {
            return;
        };
        core.detach_endpoint(location.node, guid);
        if guid.entity.is_writer() {
            let endpoint = self.model.lock().writers[index].endpoint.clone();
            core.remove_writer(&endpoint);
        } else {
            let endpoint = self.model.lock().readers[index].endpoint.clone();
            core.remove_reader(&endpoint);
        }
        self.trace_line(format_args!("removed {guid}"));
        self.drain_ready(location.process);
    }

    fn add_random_endpoint(&self, process: usize) {
        if self.is_cyclone(process)
            || self.plan.services && self.schedule.lock().random.u8(0..3) == 0
        {
            return self.add_random_service(process);
        }
        let living = {
            let model = self.model.lock();
            let writers = model
                .writers
                .iter()
                .filter(|r| r.location.process == process && !r.gone);
            let readers = model
                .readers
                .iter()
                .filter(|r| r.location.process == process && !r.gone);
            writers.count() + readers.count()
        };
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
    pub(crate) fn location(&self, process: usize) -> Option<EndpointLocation> {
        let processes = self.processes();
        let running = processes[process].running.as_ref()?;
        Some(EndpointLocation {
            process,
            incarnation: processes[process].incarnations,
            node: running.nodes.last()?.0,
        })
    }

    fn add_writer(&self, process: usize, mut spec: EndpointSpec) {
        let (Some(core), Some(location)) = (self.core(process), self.location(process)) else {
            return;
        };
        let Some(queue) = self.queue(process) else {
            return;
        };
        let flows = self.plan.flow_controlled && self.schedule.lock().random.bool();
        let flow_controlled = flows || spec.qos.latency_budget > Duration::ZERO;
        let keyed = self.plan.keyed;
        let group = self.random_group(location);
        spec.group = group.map(|group| self.model.lock().groups[group].engine());
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
        let now = self.now();
        let mut model = self.model.lock();
        let index = model.writers.len();
        schedule.add(now + self.plan.period, SimEvent::Publish(index));
        let data = &endpoint.data;
        let manual = data.qos.liveliness != Liveliness::Automatic;
        if manual && !data.qos.lease_duration.is_infinite() {
            schedule.add(now + 100 * MILLI, SimEvent::Assert(index));
        }
        drop(schedule);
        let task: Arc<dyn Task> = Arc::new(ReadyTask {
            ready: ReadySource::WriterEvents(index),
            ready_sources: self.ready_sources.clone(),
        });
        endpoint.events.slot.set_task(Arc::downgrade(&task));
        let slot = endpoint.clone();
        model.by_guid.insert(data.guid, index);
        core.attach_endpoint(location.node, data);
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
        self.trace_line(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events.slot.attach(Some(queue), || !events.is_empty());
        self.drain_ready(process);
    }

    /// Adds a reader and returns its index.
    pub fn add_reader(&self, process: usize, spec: EndpointSpec) -> Option<usize> {
        let (core, location) = (self.core(process)?, self.location(process)?);
        let queue = self.queue(process)?;
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
        let task = |ready| -> Arc<dyn Task> {
            Arc::new(ReadyTask {
                ready,
                ready_sources: self.ready_sources.clone(),
            })
        };
        let events = task(ReadySource::ReaderEvents(index));
        let samples = task(ReadySource::Samples(index));
        endpoint.events.slot.set_task(weak(&events));
        endpoint.slot.set_task(weak(&samples));
        let slot = endpoint.clone();
        let data = &endpoint.data;
        model.by_guid.insert(data.guid, index);
        core.attach_endpoint(location.node, data);
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
            taken: 0,
            attacker_samples: 0,
            lost: 0,
            deadline: SilenceCounter::default(),
            unsure: false,
            alive: (0, 0),
            incompatible_peers: Default::default(),
            created_at: self.now(),
            last_activity: self.now(),
            received: 0,
        });
        drop(model);
        self.trace_line(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events
            .slot
            .attach(Some(queue.clone()), || !events.is_empty());
        slot.slot.attach(Some(queue), || slot.has_samples());
        self.drain_ready(process);
        Some(index)
    }

    pub(crate) fn queue(
        &self,
        process: usize,
    ) -> Option<Arc<pteros_runtime::ready_queue::ReadyQueue>> {
        let processes = self.processes();
        Some(processes[process].running.as_ref()?.queue.clone())
    }

    fn apply_publish(&self, writer: usize) {
        let (endpoint, location, number, bytes, group) = {
            let model = self.model.lock();
            let record = &model.writers[writer];
            if record.gone {
                return;
            }
            let endpoint = record.endpoint.clone();
            let number = record.written + 1;
            (
                endpoint,
                record.location,
                number,
                record.bytes,
                record.group,
            )
        };
        let Some(core) = self.core(location.process) else {
            return;
        };
        let mut schedule = self.schedule.lock();
        // Writes a burst now and then.
        let mean = match schedule.random.u8(0..20) {
            0 => self.plan.period / 200,
            _ => self.plan.period,
        };
        let next = self.now() + schedule.around(mean);
        schedule.add(next, SimEvent::Publish(writer));
        drop(schedule);
        let end = self.random_instance_end(writer);
        self.maybe_begin_set(group);
        let mut message = Message::new(writer as u32, number, bytes);
        self.processes()[location.process].blocked = true;
        let start = self.now();
        let outcome = match end {
            Some((ending, instance)) => {
                let key = crate::message::key(instance);
                let ended = core.end_instance(&endpoint, ending, key, core.platform.wall_clock());
                ended.map(|()| i64::try_from(number).unwrap_or(0))
            }
            None => core.publish(&endpoint, &mut message, core.platform.wall_clock()),
        };
        self.processes()[location.process].blocked = false;
        let violation = match &outcome {
            // A filtered sample has no reader and so no heartbeat.
            Ok(_) if !self.plan.filtered => self.check_heartbeat_follows(writer),
            Ok(_) => None,
            Err(PublishError::TimedOut { .. }) => self.check_publish_timeout(writer),
            Err(_) => None,
        };
        self.model.lock().fail_all(violation);
        let waited = self.now() - start;
        let mut model = self.model.lock();
        if waited > 0 {
            // Meanwhile the engine received datagrams inside the blocked call.
            for reader in model.readers.iter_mut() {
                reader.unsure |= reader.location.process == location.process;
            }
        }
        let qos = &endpoint.data.qos;
        match outcome {
            Ok(given) => {
                model.writers[writer].written += 1;
                if let Some((ending, _)) = end {
                    model.writers[writer].ends.insert(number, ending);
                }
                model.writers[writer].times.push(self.now());
                model.record_in_set(writer, number);
                if i64::try_from(number) != Ok(given) {
                    model.fail(format!("I2 w{writer}: number {given} after {}", number - 1));
                }
                model.record_liveliness(writer, self.now(), true);
                if qos.liveliness == Liveliness::ManualByParticipant {
                    model.record_participant_liveliness(location, self.now());
                }
            }
            Err(PublishError::TimedOut { .. }) => {
                let limit = qos.max_blocking_time.as_nanos();
                let may_wait =
                    qos.history == History::KeepAll && qos.reliability == Reliability::Reliable;
                if !may_wait || i64::try_from(waited) != Ok(limit) {
                    model.fail(format!(
                        "I11 w{writer}: timed out after {waited} ns, may wait {limit}"
                    ));
                }
            }
            Err(error) => model.fail(format!("I11 w{writer}: {error}")),
        }
        drop(model);
        self.network().trace.number(waited ^ number);
        self.trace_line(format_args!("w{writer} wrote {number}, waited {waited} ns"));
        self.drain_ready(location.process);
        self.poll_process(location.process);
        self.maybe_end_set(group);
    }

    fn apply_assert(&self, writer: usize) {
        let (endpoint, location) = {
            let model = self.model.lock();
            let record = &model.writers[writer];
            if record.gone {
                return;
            }
            (record.endpoint.clone(), record.location)
        };
        let Some(core) = self.core(location.process) else {
            return;
        };
        let lease = endpoint.data.qos.lease_duration.as_nanos();
        let mut schedule = self.schedule.lock();
        // Sometimes later than the lease.
        let mean = u64::try_from(lease).unwrap_or(u64::MAX) / 5 * 4;
        let next = self.now() + schedule.around(mean);
        schedule.add(next, SimEvent::Assert(writer));
        drop(schedule);
        core.assert_liveliness(&endpoint);
        let now = self.now();
        let mut model = self.model.lock();
        match endpoint.data.qos.liveliness {
            Liveliness::ManualByParticipant => model.record_participant_liveliness(location, now),
            _ => model.record_liveliness(writer, now, false),
        }
        drop(model);
        self.drain_ready(location.process);
    }

    /// Takes a random number of samples. The rest stays ready for a later take.
    fn apply_take(&self, reader: usize) {
        let (endpoint, location) = {
            let model = self.model.lock();
            let record = &model.readers[reader];
            if record.gone {
                return;
            }
            (record.endpoint.clone(), record.location)
        };
        let Some(core) = self.core(location.process) else {
            return;
        };
        endpoint.slot.begin_take();
        let mut left = self.schedule.lock().random.u32(1..=20);
        while left > 0 {
            left -= 1;
            let Some(item) = core.take(&endpoint) else {
                break;
            };
            let number = item.meta.sequence;
            self.network().trace.number(number as u64);
            self.model.lock().sample(reader, &item);
            let publisher = item.meta.publisher;
            self.trace_line(format_args!("r{reader} took {number} of {publisher}"));
        }
        if endpoint.has_samples() {
            endpoint.slot.mark_ready();
        }
        self.drain_ready(location.process);
    }

    /// Checks a reported end of a match.
    fn check_event(&self, own: Guid, event: &EndpointEvent) {
        let EndpointEvent::Matched {
            change: -1, peer, ..
        } = event
        else {
            return;
        };
        if !self.can_check_match_ends() {
            return;
        }
        let process = {
            let model = self.model.lock();
            model.location(own).map(|location| location.process)
        };
        if let Some(wrong) = process.and_then(|process| self.check_match_end(process, *peer)) {
            self.fail(wrong);
        }
    }

    /// Handles what an endpoint reported as ready.
    pub fn handle_ready(&self, source: ReadySource) {
        match source {
            ReadySource::WriterEvents(index) => {
                let endpoint = self.model.lock().writers[index].endpoint.clone();
                endpoint.events.slot.begin_take();
                while let Some(event) = endpoint.events.take() {
                    self.trace_line(format_args!("w{index} reported {event:?}"));
                    self.check_event(endpoint.guid(), &event);
                    self.model.lock().writer_event(index, &event);
                }
            }
            ReadySource::ReaderEvents(index) => {
                let endpoint = self.model.lock().readers[index].endpoint.clone();
                endpoint.events.slot.begin_take();
                while let Some(event) = endpoint.events.take() {
                    self.trace_line(format_args!("r{index} reported {event:?}"));
                    self.check_event(endpoint.data.guid, &event);
                    let now = self.now();
                    self.model.lock().reader_event(index, &event, now);
                }
                self.model.lock().reader_events_handled(index);
            }
            ReadySource::Samples(index) => {
                let now = self.now();
                let mut model = self.model.lock();
                model.readers[index].record_activity(now);
                let read_delay = model.readers[index].read_delay;
                drop(model);
                let at = self.now() + read_delay;
                self.schedule.lock().add(at, SimEvent::Take(index));
            }
            ReadySource::Client(index) => {
                self.schedule
                    .lock()
                    .add(self.now(), SimEvent::TakeReplies(index));
            }
            ReadySource::Server(index) => {
                self.schedule
                    .lock()
                    .add(self.now(), SimEvent::TakeRequests(index));
            }
        }
    }
}

fn weak(task: &Arc<dyn Task>) -> Weak<dyn Task> {
    Arc::downgrade(task)
}

/// A short text of the policies that matter in traces.
fn qos_summary(qos: &pteros_rtps::qos::EndpointQos) -> String {
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
