//! What users and misfortune do: every [`Step`] of the script carried out on
//! the engine, and what the engine reports taken in.

use std::sync::{Arc, Weak};

use pteros_rmw::EndpointSpec;
use pteros_rmw::error::PublishError;
use pteros_rmw::event::EndpointEvent;
use pteros_rmw::flow::Pace;
use pteros_rmw::reader::Wants;
use pteros_rmw::ready::Task;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::time::Duration;

use crate::cast::{Home, Mark, ReaderRole, Ready, Watch, WriterRole};
use crate::message::Message;
use crate::plan::{Fault, qos};
use crate::script::Step;
use crate::variety::{FLOW, wanted};
use crate::world::World;

const MILLI: u64 = 1_000_000;

/// Endpoints of one process, so that churn does not grow it for ever.
const ENDPOINTS_MAX: usize = 12;

impl World {
    /// Plans the beginning: starts, and the first of each kind of misfortune.
    pub fn open(&self) {
        let mut script = self.script.lock();
        let now = self.now();
        for place in 0..self.plan.hosts.len() {
            let at = now + script.random.u64(0..2_000 * MILLI);
            script.plan(at, Step::Start(place));
        }
        let places = self.plan.hosts.len();
        let mut first = |fault: Fault, step: Step, within: u64| {
            if self.plan.has(fault) {
                let at = now + script.random.u64(0..within * MILLI);
                script.plan(at, step);
            }
        };
        for place in 0..places {
            first(Fault::Crash, Step::Crash(place), 12_000);
            first(Fault::Pause, Step::Pause(place, 0), 6_000);
            first(Fault::Churn, Step::Churn(place), 6_000);
            first(Fault::Wall, Step::JumpWall(place), 5_000);
            first(Fault::Deaf, Step::Deafen(place), 4_000);
        }
        first(Fault::Attack, Step::Attack, 3_000);
        drop(script);
        let disturbs = [Fault::Cut, Fault::Clog, Fault::Mtu, Fault::Full];
        if disturbs.iter().any(|fault| self.plan.has(*fault)) {
            self.script.lock().plan(now, Step::Disturb);
        }
        let mut network = self.network();
        for from in 0..places {
            for to in 0..places {
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

    /// Ends every misfortune; from here on only reading goes on.
    pub fn heal(&self) {
        self.end_sets();
        self.say(format_args!("healed"));
        self.script.lock().healed = true;
        let mut network = self.network();
        network.full = 0;
        network.link_faults = 0;
        for link in network.links_mut() {
            *link = crate::link::Link::perfect(300_000);
        }
        for socket in &mut network.sockets {
            socket.buffer_bytes = 8 << 20;
        }
        drop(network);
        let mut cast = self.cast.lock();
        cast.healed = true;
        for reader in &mut cast.readers {
            reader.think = 0;
        }
    }

    /// Carries out a step.
    pub fn act(&self, step: Step) {
        let healed = self.script.lock().healed;
        let goes_on = matches!(
            step,
            Step::Take(_)
                | Step::Resume(_)
                | Step::GiveUp(_)
                | Step::Collect(_)
                | Step::Serve(_)
                | Step::Reply(_)
        );
        if healed && !goes_on {
            return;
        }
        if self.is_put_off(step) {
            let at = self.now() + 2 * MILLI;
            self.script.lock().plan(at, step);
            return;
        }
        match step {
            Step::Take(_) | Step::Publish(_) => {}
            of_service if self.place_of_service_step(of_service).is_some() => {}
            _ => self.say(format_args!("{step:?}")),
        }
        match step {
            Step::Start(place) => self.act_start(place),
            Step::Crash(place) | Step::Leave(place) => self.act_end(place, step),
            Step::Pause(place, _) => self.act_pause(place),
            Step::Resume(place) => self.turn(place),
            Step::Churn(place) => self.act_churn(place),
            Step::Publish(writer) => self.act_publish(writer),
            Step::Assert(writer) => self.act_assert(writer),
            Step::Take(reader) => self.act_take(reader),
            Step::JumpWall(place) => self.act_jump(place),
            Step::Disturb => self.disturb(),
            Step::Attack => self.attack(),
            Step::Deafen(place) => self.deafen(place),
            Step::Hear(from, to) => self.network().link_mut(from, to).cut = false,
            of_service => self.act_service(of_service),
        }
    }

    /// Whether a step has to wait: its process is inside a publish, or stands
    /// still, or it would wait inside another's wait.
    fn is_put_off(&self, step: Step) -> bool {
        let place = match step {
            Step::Crash(place) | Step::Leave(place) | Step::Pause(place, _) => place,
            Step::Churn(place) => place,
            Step::Publish(writer) | Step::Assert(writer) => {
                let cast = self.cast.lock();
                let role = &cast.writers[writer];
                let waits = role.endpoint.data.qos.history == History::KeepAll;
                let place = role.home.place;
                drop(cast);
                if waits && self.places().iter().any(|p| p.blocked) {
                    return true;
                }
                place
            }
            Step::Take(reader) => {
                let place = self.cast.lock().readers[reader].home.place;
                return self.places()[place].paused_until > self.now();
            }
            of_service => {
                let Some(place) = self.place_of_service_step(of_service) else {
                    return false;
                };
                // Each of them may have to wait for room.
                if self.places().iter().any(|p| p.blocked) {
                    return true;
                }
                place
            }
        };
        let places = self.places();
        places[place].blocked || places[place].paused_until > self.now()
    }

    fn act_start(&self, place: usize) {
        if self.core(place).is_some() {
            return;
        }
        self.start(place);
        if let Some(core) = self.core(place) {
            let name = format!("n{place}");
            let key = core.add_node(&name, "/sim");
            let mut places = self.places();
            if let Some(life) = &mut places[place].life {
                life.nodes.push((key, name));
            }
        }
        for _ in 0..self.plan.endpoints {
            self.act_grow(place);
        }
        self.settle(place);
    }

    fn act_end(&self, place: usize, step: Step) {
        if self.core(place).is_none() {
            let at = self.now() + 500 * MILLI;
            return self.script.lock().plan(at, step);
        }
        let politely = step == Step::Leave(place) || self.script.lock().random.u8(0..4) == 0;
        self.end(place, politely);
        self.bury_services(place);
        let mut cast = self.cast.lock();
        for role in cast.writers.iter_mut().filter(|r| r.home.place == place) {
            role.gone = true;
        }
        for role in cast.readers.iter_mut().filter(|r| r.home.place == place) {
            role.gone = true;
        }
        drop(cast);
        let mut script = self.script.lock();
        let at = self.now() + script.around(2_500 * MILLI);
        script.plan(at, Step::Start(place));
        let at = at + script.around(8_000 * MILLI);
        script.plan(at, Step::Crash(place));
    }

    fn act_pause(&self, place: usize) {
        let mut script = self.script.lock();
        let until = self.now() + script.around(200 * MILLI);
        script.plan(until, Step::Resume(place));
        let next = until + script.around(3_000 * MILLI);
        script.plan(next, Step::Pause(place, 0));
        drop(script);
        let mut places = self.places();
        places[place].paused_until = until;
        places[place].was_paused = true;
    }

    fn act_jump(&self, place: usize) {
        const SECOND: i64 = 1_000_000_000;
        let mut script = self.script.lock();
        let far = [SECOND, 3_600 * SECOND, 10 * 365 * 86_400 * SECOND];
        let jump = far[script.random.usize(0..3)];
        let sign = if script.random.bool() { 1 } else { -1 };
        let next = self.now() + script.around(2_000 * MILLI);
        script.plan(next, Step::JumpWall(place));
        drop(script);
        self.set_wall_offset(place, sign * jump);
    }

    fn act_churn(&self, place: usize) {
        let (which, next) = {
            let mut script = self.script.lock();
            (script.random.u8(0..6), script.around(900 * MILLI))
        };
        let next = self.now() + next;
        self.script.lock().plan(next, Step::Churn(place));
        match which {
            0..=1 => self.act_grow(place),
            2..=3 => self.act_shrink(place),
            4 => self.add_node(place),
            _ => self.drop_node(place),
        }
    }

    fn add_node(&self, place: usize) {
        let Some(core) = self.core(place) else { return };
        let count = self.places()[place]
            .life
            .as_ref()
            .map_or(0, |l| l.nodes.len());
        if count >= 3 {
            return;
        }
        let name = format!("n{place}_{}", self.script.lock().random.u16(..));
        let key = core.add_node(&name, "/sim");
        if let Some(life) = &mut self.places()[place].life {
            life.nodes.push((key, name));
        }
        self.settle(place);
    }

    fn drop_node(&self, place: usize) {
        let node = {
            let mut places = self.places();
            let Some(life) = &mut places[place].life else {
                return;
            };
            if life.nodes.len() < 2 {
                return;
            }
            life.nodes.remove(1).0
        };
        let of_node: Vec<_> = {
            let cast = self.cast.lock();
            let here = |home: &Home, gone: bool| home.place == place && home.node == node && !gone;
            let writers = cast.writers.iter().filter(|r| here(&r.home, r.gone));
            let readers = cast.readers.iter().filter(|r| here(&r.home, r.gone));
            let writers = writers.map(|r| r.endpoint.guid());
            writers
                .chain(readers.map(|r| r.endpoint.data.guid))
                .collect()
        };
        for guid in of_node {
            self.remove(guid);
        }
        self.remove_services_of(place, node);
        if let Some(core) = self.core(place) {
            core.remove_node(node);
        }
        self.settle(place);
    }

    fn act_shrink(&self, place: usize) {
        if self.plan.services && self.script.lock().random.bool() {
            return self.shrink_service(place);
        }
        let living: Vec<_> = {
            let cast = self.cast.lock();
            let here = |home: &Home, gone: bool| home.place == place && !gone;
            let writers = cast.writers.iter().filter(|r| here(&r.home, r.gone));
            let readers = cast.readers.iter().filter(|r| here(&r.home, r.gone));
            let writers = writers.map(|r| r.endpoint.guid());
            writers
                .chain(readers.map(|r| r.endpoint.data.guid))
                .collect()
        };
        if living.is_empty() {
            return;
        }
        let index = self.script.lock().random.usize(0..living.len());
        self.remove(living[index]);
    }

    fn remove(&self, guid: pteros_rtps::id::Guid) {
        let found = self.cast.lock().by_guid.get(&guid).copied();
        let Some(index) = found else { return };
        if guid.entity.is_writer() {
            self.end_set_of(index);
        }
        let home = if guid.entity.is_writer() {
            let mut cast = self.cast.lock();
            cast.note_leaving(index);
            let role = &mut cast.writers[index];
            role.gone = true;
            role.home
        } else {
            let role = &mut self.cast.lock().readers[index];
            role.gone = true;
            role.home
        };
        let Some(core) = self.core(home.place) else {
            return;
        };
        core.detach_endpoint(home.node, guid);
        if guid.entity.is_writer() {
            let endpoint = self.cast.lock().writers[index].endpoint.clone();
            core.remove_writer(&endpoint);
        } else {
            let endpoint = self.cast.lock().readers[index].endpoint.clone();
            core.remove_reader(&endpoint);
        }
        self.say(format_args!("removed {guid}"));
        self.settle(home.place);
    }

    fn act_grow(&self, place: usize) {
        if self.is_foreign(place) || self.plan.services && self.script.lock().random.u8(0..3) == 0 {
            return self.grow_service(place);
        }
        let living = {
            let cast = self.cast.lock();
            let writers = cast
                .writers
                .iter()
                .filter(|r| r.home.place == place && !r.gone);
            let readers = cast
                .readers
                .iter()
                .filter(|r| r.home.place == place && !r.gone);
            writers.count() + readers.count()
        };
        if living >= ENDPOINTS_MAX {
            return;
        }
        let mut script = self.script.lock();
        let is_writer = script.random.bool();
        let topic = script.random.usize(0..self.plan.topics);
        let odd = script.random.u8(0..40) == 0;
        let spec = EndpointSpec {
            topic: format!("rt/sim{topic}"),
            type_name: format!("sim::msg::dds_::T{}_", if odd { 99 } else { topic }),
            qos: qos(&mut script.random, is_writer),
            ..EndpointSpec::default()
        };
        drop(script);
        let spec = self.varied(
            EndpointSpec {
                qos: self.bent(spec.qos, is_writer),
                ..spec
            },
            is_writer,
        );
        let spec = self.presented(spec, is_writer);
        match is_writer {
            true => self.add_writer(place, spec),
            false => {
                self.add_reader(place, spec);
            }
        }
    }

    /// The policies as the plan's later traits want them.
    fn bent(&self, mut qos: EndpointQos, is_writer: bool) -> EndpointQos {
        if self.plan.has(Fault::Tight) && qos.history == History::KeepAll {
            let limit = self.script.lock().random.u32(2..12);
            qos.resource_limits.max_samples = Some(limit);
        }
        if self.plan.manual && is_writer {
            let lease = self.script.lock().random.i64(300..2_000);
            qos.liveliness = Liveliness::ManualByParticipant;
            qos.lease_duration = Duration::from_millis(lease);
        }
        if self.plan.timed && (is_writer || self.script.lock().random.u8(0..4) > 0) {
            let span = match is_writer {
                true => 50..300,
                false => 300..1_500,
            };
            let span = self.script.lock().random.i64(span);
            qos.deadline = Duration::from_millis(span);
        }
        qos
    }

    /// A node of a process, the newest.
    pub(crate) fn home(&self, place: usize) -> Option<Home> {
        let places = self.places();
        let life = places[place].life.as_ref()?;
        Some(Home {
            place,
            life: places[place].lives,
            node: life.nodes.last()?.0,
        })
    }

    fn add_writer(&self, place: usize, mut spec: EndpointSpec) {
        let (Some(core), Some(home)) = (self.core(place), self.home(place)) else {
            return;
        };
        let Some(queue) = self.queue(place) else {
            return;
        };
        let flows = self.plan.paced && self.script.lock().random.bool();
        let paced = flows || spec.qos.latency_budget > Duration::ZERO;
        let keyed = self.plan.keyed;
        let group = self.drawn_group(home);
        spec.group = group.map(|group| self.cast.lock().groups[group].engine());
        let made = match flows {
            true => core.create_paced_writer(spec, &Pace::new(FLOW)),
            false => core.create_writer(spec),
        };
        let endpoint = match made {
            Ok(endpoint) => endpoint,
            Err(error) => return self.fail(format!("I11 p{place}: no writer: {error}")),
        };
        let mut script = self.script.lock();
        let large = script.random.u8(0..12) == 0;
        let bytes = match large {
            true => script.random.usize(1_000..100_000),
            false => script.random.usize(16..300),
        };
        let now = self.now();
        let mut cast = self.cast.lock();
        let index = cast.writers.len();
        script.plan(now + self.plan.period, Step::Publish(index));
        let data = &endpoint.data;
        let manual = data.qos.liveliness != Liveliness::Automatic;
        if manual && !data.qos.lease_duration.is_infinite() {
            script.plan(now + 100 * MILLI, Step::Assert(index));
        }
        drop(script);
        let task: Arc<dyn Task> = Arc::new(Mark {
            ready: Ready::WriterEvents(index),
            marks: self.marks.clone(),
        });
        endpoint.events.slot.set_task(Arc::downgrade(&task));
        let slot = endpoint.clone();
        cast.by_guid.insert(data.guid, index);
        core.attach_endpoint(home.node, data);
        let line = format!("w{index} {} {:?} at p{place}", data.guid, brief(&data.qos));
        let topic = data.topic.clone();
        cast.writers.push(WriterRole {
            home,
            endpoint,
            _tasks: vec![task],
            gone: false,
            written: 0,
            bytes,
            bonds: Default::default(),
            deadline: Watch::default(),
            liveliness: Watch {
                since: (manual).then_some(now),
                ..Watch::default()
            },
            misfits: Default::default(),
            times: Vec::new(),
            ends: Default::default(),
            paced,
            keyed,
            group,
            in_set: Default::default(),
            set_ends: Default::default(),
            orders: Vec::new(),
        });
        drop(cast);
        self.say(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events.slot.attach(Some(queue), || !events.is_empty());
        self.settle(place);
    }

    /// Adds a reader; its index.
    pub fn add_reader(&self, place: usize, spec: EndpointSpec) -> Option<usize> {
        let (core, home) = (self.core(place)?, self.home(place)?);
        let queue = self.queue(place)?;
        let mut script = self.script.lock();
        let wants = match script.random.bool() {
            true => Wants::Bytes,
            false => Wants::Type(Message::rust_type()),
        };
        let slow = self.plan.has(Fault::Slow) && script.random.bool() && !script.healed;
        let think = match slow {
            true => script.random.u64(0..300 * MILLI),
            false => 0,
        };
        drop(script);
        let below = wanted(&spec);
        let endpoint = match core.create_reader(spec, wants, false) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                self.fail(format!("I11 p{place}: no reader: {error}"));
                return None;
            }
        };
        let mut cast = self.cast.lock();
        let index = cast.readers.len();
        let task = |ready| -> Arc<dyn Task> {
            Arc::new(Mark {
                ready,
                marks: self.marks.clone(),
            })
        };
        let events = task(Ready::ReaderEvents(index));
        let samples = task(Ready::Samples(index));
        endpoint.events.slot.set_task(weak(&events));
        endpoint.slot.set_task(weak(&samples));
        let slot = endpoint.clone();
        let data = &endpoint.data;
        cast.by_guid.insert(data.guid, index);
        core.attach_endpoint(home.node, data);
        let line = format!("r{index} {} {:?} at p{place}", data.guid, brief(&data.qos));
        let topic = data.topic.clone();
        cast.readers.push(ReaderRole {
            home,
            endpoint,
            _tasks: vec![events, samples],
            gone: false,
            think,
            bonds: Default::default(),
            wants: below,
            orders: Default::default(),
            heard: Default::default(),
            taken: 0,
            strange: 0,
            lost: 0,
            deadline: Watch::default(),
            unsure: false,
            alive: (0, 0),
            misfits: Default::default(),
            born: self.now(),
            stirred: self.now(),
            received: 0,
        });
        drop(cast);
        self.say(format_args!("new {line} on {topic}"));
        let events = &slot.events;
        events
            .slot
            .attach(Some(queue.clone()), || !events.is_empty());
        slot.slot.attach(Some(queue), || slot.has_samples());
        self.settle(place);
        Some(index)
    }

    pub(crate) fn queue(&self, place: usize) -> Option<Arc<pteros_rmw::ready::ReadyQueue>> {
        let places = self.places();
        Some(places[place].life.as_ref()?.queue.clone())
    }

    fn act_publish(&self, writer: usize) {
        let (endpoint, home, number, bytes, group) = {
            let cast = self.cast.lock();
            let role = &cast.writers[writer];
            if role.gone {
                return;
            }
            let endpoint = role.endpoint.clone();
            let number = role.written + 1;
            (endpoint, role.home, number, role.bytes, role.group)
        };
        let Some(core) = self.core(home.place) else {
            return;
        };
        let mut script = self.script.lock();
        // Bursts now and then.
        let mean = match script.random.u8(0..20) {
            0 => self.plan.period / 200,
            _ => self.plan.period,
        };
        let next = self.now() + script.around(mean);
        script.plan(next, Step::Publish(writer));
        drop(script);
        let end = self.drawn_end(writer);
        self.begin_set_sometimes(group);
        let mut message = Message::new(writer as u32, number, bytes);
        self.places()[home.place].blocked = true;
        let start = self.now();
        let outcome = match end {
            Some((ending, instance)) => {
                let key = crate::message::key(instance);
                let ended = core.end_instance(&endpoint, ending, key, core.env.wall());
                ended.map(|()| i64::try_from(number).unwrap_or(0))
            }
            None => core.publish(&endpoint, &mut message, core.env.wall()),
        };
        self.places()[home.place].blocked = false;
        let judged = match &outcome {
            // What nobody wants brings no heartbeat.
            Ok(_) if !self.plan.filtered => self.judge_pace(writer),
            Ok(_) => None,
            Err(PublishError::TimedOut { .. }) => self.judge_time_out(writer),
            Err(_) => None,
        };
        self.cast.lock().fail_all(judged);
        let waited = self.now() - start;
        let mut cast = self.cast.lock();
        if waited > 0 {
            // Meanwhile the engine took datagrams in by itself.
            for reader in cast.readers.iter_mut() {
                reader.unsure |= reader.home.place == home.place;
            }
        }
        let qos = &endpoint.data.qos;
        match outcome {
            Ok(given) => {
                cast.writers[writer].written += 1;
                if let Some((ending, _)) = end {
                    cast.writers[writer].ends.insert(number, ending);
                }
                cast.writers[writer].times.push(self.now());
                cast.note_in_set(writer, number);
                if i64::try_from(number) != Ok(given) {
                    cast.fail(format!("I2 w{writer}: number {given} after {}", number - 1));
                }
                cast.note_life(writer, self.now(), true);
                if qos.liveliness == Liveliness::ManualByParticipant {
                    cast.note_participant_life(home, self.now());
                }
            }
            Err(PublishError::TimedOut { .. }) => {
                let limit = qos.max_blocking_time.as_nanos();
                let may_wait =
                    qos.history == History::KeepAll && qos.reliability == Reliability::Reliable;
                if !may_wait || i64::try_from(waited) != Ok(limit) {
                    cast.fail(format!(
                        "I11 w{writer}: timed out after {waited} ns, may wait {limit}"
                    ));
                }
            }
            Err(error) => cast.fail(format!("I11 w{writer}: {error}")),
        }
        drop(cast);
        self.network().trace.number(waited ^ number);
        self.say(format_args!("w{writer} wrote {number}, waited {waited} ns"));
        self.settle(home.place);
        self.turn(home.place);
        self.end_set_sometimes(group);
    }

    fn act_assert(&self, writer: usize) {
        let (endpoint, home) = {
            let cast = self.cast.lock();
            let role = &cast.writers[writer];
            if role.gone {
                return;
            }
            (role.endpoint.clone(), role.home)
        };
        let Some(core) = self.core(home.place) else {
            return;
        };
        let lease = endpoint.data.qos.lease_duration.as_nanos();
        let mut script = self.script.lock();
        // Sometimes too late.
        let mean = u64::try_from(lease).unwrap_or(u64::MAX) / 5 * 4;
        let next = self.now() + script.around(mean);
        script.plan(next, Step::Assert(writer));
        drop(script);
        core.assert_liveliness(&endpoint);
        let now = self.now();
        let mut cast = self.cast.lock();
        match endpoint.data.qos.liveliness {
            Liveliness::ManualByParticipant => cast.note_participant_life(home, now),
            _ => cast.note_life(writer, now, false),
        }
        drop(cast);
        self.settle(home.place);
    }

    /// Takes some samples, and comes back for the rest.
    fn act_take(&self, reader: usize) {
        let (endpoint, home) = {
            let cast = self.cast.lock();
            let role = &cast.readers[reader];
            if role.gone {
                return;
            }
            (role.endpoint.clone(), role.home)
        };
        let Some(core) = self.core(home.place) else {
            return;
        };
        endpoint.slot.taken();
        let mut left = self.script.lock().random.u32(1..=20);
        while left > 0 {
            left -= 1;
            let Some(item) = core.take(&endpoint) else {
                break;
            };
            let number = item.meta.sequence;
            self.network().trace.number(number as u64);
            self.cast.lock().sample(reader, &item);
            let publisher = item.meta.publisher;
            self.say(format_args!("r{reader} took {number} of {publisher}"));
        }
        if endpoint.has_samples() {
            endpoint.slot.ready();
        }
        self.settle(home.place);
    }

    /// Judges the end of a match.
    fn judge_event(&self, own: Guid, event: &EndpointEvent) {
        let EndpointEvent::Matched {
            change: -1, peer, ..
        } = event
        else {
            return;
        };
        if !self.can_judge_ends() {
            return;
        }
        let place = {
            let cast = self.cast.lock();
            cast.home(own).map(|home| home.place)
        };
        if let Some(wrong) = place.and_then(|place| self.judge_end(place, *peer)) {
            self.fail(wrong);
        }
    }

    /// Takes in what an endpoint reported.
    pub fn take_in(&self, mark: Ready) {
        match mark {
            Ready::WriterEvents(index) => {
                let endpoint = self.cast.lock().writers[index].endpoint.clone();
                endpoint.events.slot.taken();
                while let Some(event) = endpoint.events.take() {
                    self.say(format_args!("w{index} told {event:?}"));
                    self.judge_event(endpoint.guid(), &event);
                    self.cast.lock().writer_event(index, &event);
                }
            }
            Ready::ReaderEvents(index) => {
                let endpoint = self.cast.lock().readers[index].endpoint.clone();
                endpoint.events.slot.taken();
                while let Some(event) = endpoint.events.take() {
                    self.say(format_args!("r{index} told {event:?}"));
                    self.judge_event(endpoint.data.guid, &event);
                    let now = self.now();
                    self.cast.lock().reader_event(index, &event, now);
                }
                self.cast.lock().reader_events_told(index);
            }
            Ready::Samples(index) => {
                let now = self.now();
                let mut cast = self.cast.lock();
                cast.readers[index].note_stir(now);
                let think = cast.readers[index].think;
                drop(cast);
                let at = self.now() + think;
                self.script.lock().plan(at, Step::Take(index));
            }
            Ready::Client(index) => {
                self.script.lock().plan(self.now(), Step::Collect(index));
            }
            Ready::Server(index) => {
                self.script.lock().plan(self.now(), Step::Serve(index));
            }
        }
    }
}

fn weak(task: &Arc<dyn Task>) -> Weak<dyn Task> {
    Arc::downgrade(task)
}

/// The policies that matter here, in a few words.
fn brief(qos: &pteros_rtps::qos::EndpointQos) -> String {
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
