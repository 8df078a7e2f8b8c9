//! Applies simulator events to the engine, and collects the engine's reports.
//!
//! Each [`SimEvent`] of the schedule is an action of a user (publish, take, create
//! an endpoint) or an injected fault (crash, pause, clock jump).

use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{History, Liveliness, Reliability};
use pteros_runtime::error::PublishError;
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::writer::WriterEndpoint;
use pteros_runtime::{Core, CoreOptions};

use super::generators;
use super::message::{self, Message};
use super::model::records::{EndpointLocation, ReadySource};
use super::schedule::SimEvent;
use super::world::GraphWorld;
use crate::harness::options::Fault;
use crate::network::link::Link;
use crate::simulation::contexts::StartOptions;
use crate::simulation::event_loop::Agenda;

const MILLI: u64 = 1_000_000;

/// Gap intervals that a reader may store where limits are small.
const GAP_INTERVALS_TIGHT: usize = 3;

/// Chance in 1/10000, at each use, that a shared-memory connection is refused, is
/// full, or ends.
const CONNECTION_FAULT_RATE: u32 = 20;

impl Agenda for GraphWorld {
    fn next_at(&self) -> Option<u64> {
        self.schedule.lock().next_at()
    }

    fn apply_next(&self) {
        let event = self.schedule.lock().next();
        if let Some(event) = event {
            self.apply(event);
        }
    }

    fn handle_ready(&self, process: usize) {
        let ready_sources = std::mem::take(&mut *self.ready_sources.lock());
        for source in ready_sources {
            self.handle_source(source);
        }
        self.record_reader_activity(process);
    }
}

impl GraphWorld {
    /// Schedules the process starts and the first fault of each kind.
    pub fn open(&self) {
        self.open_networks();
        let mut schedule = self.schedule.lock();
        let now = self.sim.now();
        for process in 0..self.plan.hosts.len() - self.plan.late_processes {
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
            first(Fault::Pause, SimEvent::Pause(process), 6_000);
            first(Fault::Churn, SimEvent::Churn(process), 6_000);
            first(Fault::WallClock, SimEvent::JumpWallClock(process), 5_000);
            first(
                Fault::OneWayOutage,
                SimEvent::StartOneWayOutage(process),
                4_000,
            );
        }
        first(Fault::Attack, SimEvent::Attack, 3_000);
        first(Fault::Forgery, SimEvent::Forge(false), 3_000);
        first(Fault::SpoofedForgery, SimEvent::Forge(true), 3_000);
        drop(schedule);
        let disturbs = [Fault::Cut, Fault::Stall, Fault::Mtu, Fault::SocketFull];
        if disturbs.iter().any(|fault| self.plan.has(*fault)) {
            self.schedule.lock().add(now, SimEvent::ChangeNetworkFault);
        }
        let mut network = self.sim.network();
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
        self.sim.trace_line(format_args!("healed"));
        {
            let mut schedule = self.schedule.lock();
            schedule.healed = true;
            schedule.healed_at = self.sim.now();
        }
        let mut network = self.sim.network();
        network.send_full_rate = 0;
        network.connection_fault_rate = 0;
        for link in network.links_mut() {
            *link = Link::perfect(300_000);
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
        drop(model);
        self.heal_networks();
    }

    /// Applies an event.
    fn apply(&self, event: SimEvent) {
        self.check_silence_when_due();
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
            let at = self.sim.now() + 2 * MILLI;
            self.schedule.lock().add(at, event);
            return;
        }
        match event {
            SimEvent::Take(_)
            | SimEvent::Publish(_)
            | SimEvent::CheckFlows
            | SimEvent::CheckAcknowledgements(..) => {}
            of_service if self.process_of_service_event(of_service).is_some() => {}
            _ => self.sim.trace_line(format_args!("{event:?}")),
        }
        match event {
            SimEvent::Start(process) => self.apply_start(process),
            SimEvent::Crash(process) | SimEvent::Leave(process) => self.apply_stop(process, event),
            SimEvent::Pause(process) => self.apply_pause(process),
            SimEvent::Resume(process) => self.sim.poll_process(process),
            SimEvent::Churn(process) => self.apply_churn(process),
            SimEvent::Publish(writer) => self.apply_publish(writer),
            SimEvent::Assert(writer) => self.apply_assert(writer),
            SimEvent::Take(reader) => self.apply_take(reader),
            SimEvent::JumpWallClock(process) => self.apply_jump(process),
            SimEvent::ChangeNetworkFault => self.change_network_fault(),
            SimEvent::Attack => self.attack(),
            SimEvent::Forge(spoofs_address) => self.forge(spoofs_address),
            SimEvent::ChangeNetworks => self.change_networks(),
            SimEvent::CheckFlows => self.check_flows(),
            SimEvent::CheckAcknowledgements(from, to) => self.check_acknowledgements(from, to),
            SimEvent::StartOneWayOutage(process) => self.start_one_way_outage(process),
            SimEvent::EndOneWayOutage(from, to) => {
                self.sim.network().link_mut(from, to).cut = false
            }
            of_service => self.apply_service_event(of_service),
        }
    }

    /// Whether an event must wait: its process blocks in a publish, is paused, or
    /// another process blocks and this event could block as well.
    fn is_deferred(&self, event: SimEvent) -> bool {
        let process = match event {
            SimEvent::Crash(process) | SimEvent::Leave(process) | SimEvent::Pause(process) => {
                process
            }
            SimEvent::Churn(process) => process,
            SimEvent::Publish(writer) | SimEvent::Assert(writer) => {
                let model = self.model.lock();
                let record = &model.writers[writer];
                let waits = record.endpoint.data.qos.history == History::KeepAll;
                let process = record.location.process;
                drop(model);
                if waits && self.sim.processes().iter().any(|p| p.blocked) {
                    return true;
                }
                process
            }
            SimEvent::Take(reader) => {
                let process = self.model.lock().readers[reader].location.process;
                return self.sim.processes()[process].paused_until > self.sim.now();
            }
            of_service => {
                let Some(process) = self.process_of_service_event(of_service) else {
                    return false;
                };
                // Each of these events may block until there is room in a history.
                if self.sim.processes().iter().any(|p| p.blocked) {
                    return true;
                }
                process
            }
        };
        let processes = self.sim.processes();
        processes[process].blocked || processes[process].paused_until > self.sim.now()
    }

    /// Starts a process with the options of the plan.
    fn start(&self, process: usize) {
        let how = StartOptions {
            reuses_guid: self.plan.has(Fault::GuidReuse)
                && self.sim.processes()[process].incarnations > 0
                && self.schedule.lock().random.bool(),
            has_small_buffer: self.plan.has(Fault::SocketFull),
        };
        let mut options = CoreOptions {
            lease: self.plan.lease,
            ..CoreOptions::default()
        };
        options.shared_memory.enabled =
            self.plan.has(Fault::SharedMemory) && !self.is_cyclone(process);
        if options.shared_memory.enabled && !self.schedule.lock().healed {
            self.sim.network().connection_fault_rate = CONNECTION_FAULT_RATE;
        }
        if self.plan.flow_controlled {
            options.flow_controllers = vec![generators::flow()];
        }
        if self.plan.has(Fault::SmallLimits) {
            options.limits.gap_intervals = GAP_INTERVALS_TIGHT;
        }
        self.sim.start(process, how, options);
    }

    pub fn apply_start(&self, process: usize) {
        if self.sim.core(process).is_some() {
            return;
        }
        self.start(process);
        if let Some(core) = self.sim.core(process) {
            let name = format!("n{process}");
            let key = core.discovery().add_node(&name, "/sim");
            let mut processes = self.sim.processes();
            if let Some(running) = &mut processes[process].running {
                running.nodes.push((key, name));
            }
        }
        for _ in 0..self.plan.endpoints {
            self.add_random_endpoint(process);
        }
        self.sim.drain_ready(process);
    }

    fn apply_stop(&self, process: usize, event: SimEvent) {
        if self.sim.core(process).is_none() {
            let at = self.sim.now() + 500 * MILLI;
            return self.schedule.lock().add(at, event);
        }
        let gracefully =
            event == SimEvent::Leave(process) || self.schedule.lock().random.u8(0..4) == 0;
        self.sim.end(process, gracefully);
        self.mark_services_gone(process);
        self.model.lock().mark_gone(process);
        let mut schedule = self.schedule.lock();
        let at = self.sim.now() + schedule.around(2_500 * MILLI);
        schedule.add(at, SimEvent::Start(process));
        let at = at + schedule.around(8_000 * MILLI);
        schedule.add(at, SimEvent::Crash(process));
    }

    fn apply_pause(&self, process: usize) {
        let mut schedule = self.schedule.lock();
        let until = self.sim.now() + schedule.around(200 * MILLI);
        schedule.add(until, SimEvent::Resume(process));
        let next = until + schedule.around(3_000 * MILLI);
        schedule.add(next, SimEvent::Pause(process));
        drop(schedule);
        let mut processes = self.sim.processes();
        processes[process].paused_until = until;
        processes[process].was_paused = true;
    }

    fn apply_jump(&self, process: usize) {
        const SECOND: i64 = 1_000_000_000;
        let mut schedule = self.schedule.lock();
        let far = [SECOND, 3_600 * SECOND, 10 * 365 * 86_400 * SECOND];
        let jump = far[schedule.random.usize(0..3)];
        let sign = if schedule.random.bool() { 1 } else { -1 };
        let next = self.sim.now() + schedule.around(2_000 * MILLI);
        schedule.add(next, SimEvent::JumpWallClock(process));
        drop(schedule);
        self.sim.set_wall_offset(process, sign * jump);
    }

    fn apply_churn(&self, process: usize) {
        let (which, next) = {
            let mut schedule = self.schedule.lock();
            (schedule.random.u8(0..6), schedule.around(900 * MILLI))
        };
        let next = self.sim.now() + next;
        self.schedule.lock().add(next, SimEvent::Churn(process));
        match which {
            0..=1 => self.add_random_endpoint(process),
            2..=3 => self.remove_random_endpoint(process),
            4 => self.add_node(process),
            _ => self.remove_random_node(process),
        }
    }

    fn add_node(&self, process: usize) {
        let Some(core) = self.sim.core(process) else {
            return;
        };
        let count = self.sim.processes()[process]
            .running
            .as_ref()
            .map_or(0, |l| l.nodes.len());
        if count >= 3 {
            return;
        }
        let name = format!("n{process}_{}", self.schedule.lock().random.u16(..));
        let key = core.discovery().add_node(&name, "/sim");
        if let Some(running) = &mut self.sim.processes()[process].running {
            running.nodes.push((key, name));
        }
        self.sim.drain_ready(process);
    }

    fn remove_random_node(&self, process: usize) {
        let node = {
            let mut processes = self.sim.processes();
            let Some(running) = &mut processes[process].running else {
                return;
            };
            if running.nodes.len() < 2 {
                return;
            }
            running.nodes.remove(1).0
        };
        let is_there =
            |location: &EndpointLocation| location.process == process && location.node == node;
        let of_node = self.model.lock().living_endpoints(is_there);
        for guid in of_node {
            self.remove(guid);
        }
        self.remove_services_of(process, node);
        if let Some(core) = self.sim.core(process) {
            core.discovery().remove_node(node);
        }
        self.sim.drain_ready(process);
    }

    /// A writer that was not removed, its location and its context.
    fn living_writer(
        &self,
        writer: usize,
    ) -> Option<(Arc<WriterEndpoint>, EndpointLocation, Arc<Core>)> {
        let model = self.model.lock();
        let record = model.writers.get(writer).filter(|record| !record.gone)?;
        let core = self.sim.core(record.location.process)?;
        Some((record.endpoint.clone(), record.location, core))
    }

    /// The same of a reader.
    fn living_reader(
        &self,
        reader: usize,
    ) -> Option<(Arc<ReaderEndpoint>, EndpointLocation, Arc<Core>)> {
        let model = self.model.lock();
        let record = model.readers.get(reader).filter(|record| !record.gone)?;
        let core = self.sim.core(record.location.process)?;
        Some((record.endpoint.clone(), record.location, core))
    }

    fn apply_publish(&self, writer: usize) {
        let Some((endpoint, location, core)) = self.living_writer(writer) else {
            return;
        };
        let (number, bytes, group) = {
            let model = self.model.lock();
            let record = &model.writers[writer];
            (record.written + 1, record.bytes, record.group)
        };
        let mut schedule = self.schedule.lock();
        // Writes a burst now and then.
        let mean = match schedule.random.u8(0..20) {
            0 => self.plan.period / 200,
            _ => self.plan.period,
        };
        let next = self.sim.now() + schedule.around(mean);
        schedule.add(next, SimEvent::Publish(writer));
        drop(schedule);
        let end = self.random_instance_end(writer);
        self.maybe_begin_set(group);
        let mut message = Message::new(writer as u32, number, bytes);
        let start = self.sim.now();
        let outcome = self.sim.blocking(location.process, || match end {
            Some((ending, instance)) => {
                let key = message::key(instance);
                let ended = core.end_instance(&endpoint, ending, key, core.platform.wall_clock());
                ended.map(|()| i64::try_from(number).unwrap_or(0))
            }
            None => core.publish(&endpoint, &mut message, core.platform.wall_clock()),
        });
        let violation = match &outcome {
            // A filtered sample has no reader and so no heartbeat.
            Ok(_) if !self.plan.filtered => self.check_heartbeat_follows(writer),
            Ok(_) => None,
            Err(PublishError::TimedOut { .. }) => self.check_publish_timeout(writer),
            Err(_) => None,
        };
        self.model.lock().fail_all(violation);
        let waited = self.sim.now() - start;
        let mut model = self.model.lock();
        if waited > 0 {
            model.mark_unsure(location.process);
        }
        let qos = &endpoint.data.qos;
        match outcome {
            Ok(given) => {
                model.writers[writer].written += 1;
                if let Some((ending, _)) = end {
                    model.writers[writer].ends.insert(number, ending);
                }
                model.writers[writer].times.push(self.sim.now());
                model.record_in_set(writer, number);
                model.note_late_flows(self.sim.now());
                if i64::try_from(number) != Ok(given) {
                    model.fail(format!("I2 w{writer}: number {given} after {}", number - 1));
                }
                model.record_liveliness(writer, self.sim.now(), true);
                if qos.liveliness == Liveliness::ManualByParticipant {
                    model.record_participant_liveliness(location, self.sim.now());
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
        self.sim.network().trace.number(waited ^ number);
        self.sim
            .trace_line(format_args!("w{writer} wrote {number}, waited {waited} ns"));
        self.sim.drain_ready(location.process);
        self.sim.poll_process(location.process);
        self.maybe_end_set(group);
    }

    fn apply_assert(&self, writer: usize) {
        let Some((endpoint, location, core)) = self.living_writer(writer) else {
            return;
        };
        let lease = endpoint.data.qos.lease_duration.as_nanos();
        let mut schedule = self.schedule.lock();
        // Sometimes later than the lease.
        let mean = u64::try_from(lease).unwrap_or(u64::MAX) / 5 * 4;
        let next = self.sim.now() + schedule.around(mean);
        schedule.add(next, SimEvent::Assert(writer));
        drop(schedule);
        core.discovery().assert_liveliness(&endpoint);
        let now = self.sim.now();
        let mut model = self.model.lock();
        match endpoint.data.qos.liveliness {
            Liveliness::ManualByParticipant => model.record_participant_liveliness(location, now),
            _ => model.record_liveliness(writer, now, false),
        }
        drop(model);
        self.sim.drain_ready(location.process);
    }

    /// Takes a random number of samples. The rest stays ready for a later take.
    fn apply_take(&self, reader: usize) {
        let Some((endpoint, location, core)) = self.living_reader(reader) else {
            return;
        };
        endpoint.slot.begin_take();
        let mut left = self.schedule.lock().random.u32(1..=20);
        while left > 0 {
            left -= 1;
            let Some(item) = core.taking().take(&endpoint) else {
                break;
            };
            let number = item.meta.sequence;
            self.sim.network().trace.number(number as u64);
            self.model.lock().sample(reader, &item, self.sim.now());
            let publisher = item.meta.publisher;
            self.sim
                .trace_line(format_args!("r{reader} took {number} of {publisher}"));
        }
        if endpoint.has_samples() {
            endpoint.slot.mark_ready();
        }
        self.sim.drain_ready(location.process);
    }

    /// Records new samples of readers whose deadlines are counted.
    fn record_reader_activity(&self, process: usize) {
        let now = self.sim.now();
        for reader in &mut self.model.lock().readers {
            if reader.location.process == process && reader.is_watched() {
                reader.record_activity(now);
            }
        }
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
    fn handle_source(&self, source: ReadySource) {
        match source {
            ReadySource::WriterEvents(index) => {
                let endpoint = self.model.lock().writers[index].endpoint.clone();
                endpoint.events.slot.begin_take();
                while let Some(event) = endpoint.events.take() {
                    self.sim
                        .trace_line(format_args!("w{index} reported {event:?}"));
                    self.check_event(endpoint.guid(), &event);
                    let now = self.sim.now();
                    self.model.lock().writer_event(index, &event, now);
                }
            }
            ReadySource::ReaderEvents(index) => {
                let endpoint = self.model.lock().readers[index].endpoint.clone();
                endpoint.events.slot.begin_take();
                while let Some(event) = endpoint.events.take() {
                    self.sim
                        .trace_line(format_args!("r{index} reported {event:?}"));
                    self.check_event(endpoint.data.guid, &event);
                    let now = self.sim.now();
                    self.model.lock().reader_event(index, &event, now);
                }
                self.model.lock().reader_events_handled(index);
            }
            ReadySource::Samples(index) => {
                let now = self.sim.now();
                let mut model = self.model.lock();
                model.readers[index].record_activity(now);
                let read_delay = model.readers[index].read_delay;
                drop(model);
                let at = self.sim.now() + read_delay;
                self.schedule.lock().add(at, SimEvent::Take(index));
            }
            ReadySource::Client(index) => {
                self.schedule
                    .lock()
                    .add(self.sim.now(), SimEvent::TakeReplies(index));
            }
            ReadySource::Server(index) => {
                self.schedule
                    .lock()
                    .add(self.sim.now(), SimEvent::TakeRequests(index));
            }
        }
    }
}
