//! Plays a scenario: contexts in a simulated world, every event and status kept
//! with its time.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration as Span;

use parking_lot::Mutex;
use pteros_msg::cdr::Representation;
use pteros_msg::dynamic::DynamicType;
use pteros_rmw::content_filter::{FilterSpec, MessageType};
use pteros_rmw::error::{EndpointError, GroupError, PublishError, QosChangeError};
use pteros_rmw::event::Events;
use pteros_rmw::flow::{FlowController, Pace};
use pteros_rmw::instance::{Ending, Keying};
use pteros_rmw::publisher_group::PublisherGroup;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::ready::Task;
use pteros_rmw::writer::{Outgoing, WriterEndpoint};
use pteros_rmw::{Core, CoreOptions, EndpointSpec};
use pteros_rtps::time::{Duration, Timestamp};

use super::policies::{EndpointPlan, GroupPlan};
use super::sample::{self, Sample};
use super::seen::{self, Expected};
use super::step::{Instance, Scenario, Step, Taken, Trouble, Verb, Way, Written};
use super::{BEAT_MILLIS, Failure};
use crate::link::Link;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::World;

const MILLI: u64 = 1_000_000;

/// For contexts to meet before the first step.
const MEETING_MILLIS: u64 = 500;

/// How long peers keep a context that they do not hear.
const LEASE: Duration = Duration::from_secs(10);

/// Nanoseconds that a datagram takes.
const DELAY: u64 = 100_000;

/// The flow controller of paced writers.
const FLOW: &str = "flow";

/// Plays `scenario` on one path.
pub fn play(scenario: &Scenario, way: Way) -> Result<(), Box<Failure>> {
    let mut stage = Stage::new(scenario, way);
    for (index, step) in scenario.steps.iter().enumerate() {
        let done = stage.carry_out(step);
        let judged = match (done, &step.refused) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(refused)) => Err(format!("not refused, {refused} was expected")),
            (Err(Trip::Refused(word, _)), Some(refused)) if word == *refused => Ok(()),
            (Err(Trip::Refused(word, why)), _) => Err(format!("refused, {word}: {why}")),
            (Err(Trip::Wrong(reason)), _) => Err(reason),
        };
        let judged = judged.and_then(|()| stage.pass(&step.verb));
        if let Err(reason) = judged {
            return Err(Box::new(Failure {
                scenario: format!("{} [{}]", scenario.name, way.name()),
                line: scenario.line,
                text: scenario.text.clone(),
                column: step.column,
                step: index + 1,
                reason,
                log: stage.log.lock().clone(),
            }));
        }
    }
    Ok(())
}

/// Why a step did not go well.
enum Trip {
    /// By the engine, with a word for it.
    Refused(String, String),
    /// Otherwise than expected, or not possible.
    Wrong(String),
}

/// Everything seen, with its time.
type Log = Arc<Mutex<Vec<String>>>;

/// An endpoint of the engine.
#[derive(Clone)]
enum Side {
    Writer(Arc<WriterEndpoint>),
    Reader(Arc<ReaderEndpoint>),
}

impl Side {
    fn events(&self) -> &Arc<Events> {
        match self {
            Self::Writer(writer) => &writer.events,
            Self::Reader(reader) => &reader.events,
        }
    }
}

struct Player {
    place: usize,
    side: Side,
    plan: EndpointPlan,
    ty: DynamicType,
    diary: Arc<Diary>,
}

/// What an endpoint has told.
struct Diary {
    name: String,
    events: Weak<Events>,
    world: Weak<World>,
    log: Log,
    start: u64,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    latest: BTreeMap<&'static str, Expected>,
    /// Since the last look.
    new: Vec<Expected>,
}

impl Task for Diary {
    fn run(&self) {
        let (Some(events), Some(world)) = (self.events.upgrade(), self.world.upgrade()) else {
            return;
        };
        events.slot.taken();
        let mut told = self.told.lock();
        while let Some(event) = events.take() {
            let seen = seen::event(&event);
            note(
                &self.log,
                &world,
                self.start,
                &format!("{}! {seen}", self.name),
            );
            told.latest.insert(seen.name, seen.clone());
            told.new.push(seen);
        }
    }
}

fn note(log: &Log, world: &World, start: u64, line: &str) {
    let micros = world.now().saturating_sub(start) / 1_000;
    let (millis, micros) = (micros / 1_000, micros % 1_000);
    log.lock()
        .push(format!("{millis:>6}.{micros:03} ms  {line}"));
}

struct Stage {
    world: Arc<World>,
    way: Way,
    start: u64,
    log: Log,
    players: BTreeMap<String, Player>,
    groups: BTreeMap<String, (usize, Arc<PublisherGroup>)>,
}

impl Stage {
    fn new(scenario: &Scenario, way: Way) -> Self {
        let contexts = match way {
            Way::Local => 1,
            Way::Net | Way::Link => places(scenario),
        };
        let plan = Plan {
            hosts: match way {
                Way::Link => vec![1; contexts],
                _ => (1u8..).take(contexts).collect(),
            },
            lease: LEASE,
            ..Plan::quiet()
        };
        let world = World::new(plan, (1, 2), Trace::new(false));
        world.network().in_order = true;
        let mut stage = Self {
            start: world.now(),
            world,
            way,
            log: Log::default(),
            players: BTreeMap::new(),
            groups: BTreeMap::new(),
        };
        for place in 0..contexts {
            stage.open(place);
        }
        stage.world.run_until(stage.start + MEETING_MILLIS * MILLI);
        stage.start = stage.world.now();
        stage
    }

    fn open(&mut self, place: usize) {
        let flow = FlowController::new(FLOW)
            .bytes_per_period(10_000)
            .period(Span::from_millis(10));
        let mut options = CoreOptions {
            lease: LEASE,
            flow_controllers: vec![flow],
            ..CoreOptions::default()
        };
        options.shared_memory.on = self.way == Way::Link;
        self.world.start_with(place, options);
    }

    /// Lets what a step causes happen.
    fn pass(&self, verb: &Verb) -> Result<(), String> {
        let span = match verb {
            Verb::Wait(nanos) => *nanos,
            _ => BEAT_MILLIS * MILLI,
        };
        let until = self.world.now() + span;
        self.world.run_until(until);
        match self.world.cast.lock().violations.first() {
            None => Ok(()),
            Some(violation) => Err(format!("an invariant is broken: {violation}")),
        }
    }

    fn note(&self, line: &str) {
        note(&self.log, &self.world, self.start, line);
    }

    /// Where a context lives on this path.
    fn place(&self, place: usize) -> usize {
        match self.way {
            Way::Local => 0,
            Way::Net | Way::Link => place,
        }
    }

    fn core(&self, place: usize) -> Result<Arc<Core>, Trip> {
        let letter = char::from(b'a' + u8::try_from(place).unwrap_or(0));
        let core = self.world.core(place);
        core.ok_or_else(|| Trip::Wrong(format!("context {letter} does not run")))
    }

    fn player(&self, name: &str) -> Result<&Player, Trip> {
        let player = self.players.get(name);
        player.ok_or_else(|| Trip::Wrong(format!("there is no {name}")))
    }

    fn writer(&self, name: &str) -> Result<(&Player, &Arc<WriterEndpoint>), Trip> {
        let player = self.player(name)?;
        match &player.side {
            Side::Writer(writer) => Ok((player, writer)),
            Side::Reader(_) => Err(Trip::Wrong(format!("{name} is no writer"))),
        }
    }

    fn reader(&self, name: &str) -> Result<(&Player, &Arc<ReaderEndpoint>), Trip> {
        let player = self.player(name)?;
        match &player.side {
            Side::Reader(reader) => Ok((player, reader)),
            Side::Writer(_) => Err(Trip::Wrong(format!("{name} is no reader"))),
        }
    }

    fn carry_out(&mut self, step: &Step) -> Result<(), Trip> {
        match &step.verb {
            Verb::Create(endpoints, groups) => {
                groups.iter().try_for_each(|plan| self.create_group(plan))?;
                endpoints.iter().try_for_each(|plan| self.create(plan))
            }
            Verb::Delete(name) => self.delete(name),
            Verb::Write(name, values) => {
                let mut each = values.iter();
                each.try_for_each(|value| self.write(name, value))
            }
            Verb::Instance(name, deed, keys) => {
                let mut each = keys.iter();
                each.try_for_each(|key| self.treat_instance(name, *deed, key))
            }
            Verb::Assert(name) => self.assert_liveliness(name),
            Verb::Flush(name) => self.flush(name),
            Verb::Filter(name, text) => self.filter(name, text),
            Verb::Set(name, changes) => self.set(name, changes),
            Verb::Wait(_) => Ok(()),
            Verb::Take {
                reader,
                all,
                expected,
            } => self.take(reader, *all, expected),
            Verb::Status(name, expected) => self.judge_status(name, expected),
            Verb::Events(name, expected) => self.judge_events(name, expected),
            Verb::Begin(name) => self.begin(name),
            Verb::End(name) => self.end(name),
            Verb::Crash(place) => self.end_context(*place, false),
            Verb::Leave(place) => self.end_context(*place, true),
            Verb::Start(place) => self.start_again(*place),
            Verb::Wall(place, jump) => {
                let place = self.place(*place);
                let before = self.world.wall_offset(place);
                self.world.set_wall_offset(place, before + jump);
                Ok(())
            }
            Verb::Trouble(links, trouble) => {
                for (from, to) in links {
                    bring(self.world.network().link_mut(*from, *to), *trouble);
                }
                Ok(())
            }
            Verb::Heal => {
                for link in self.world.network().links_mut() {
                    *link = Link::perfect(DELAY);
                }
                Ok(())
            }
        }
    }

    fn create_group(&mut self, plan: &GroupPlan) -> Result<(), Trip> {
        let place = self.place(plan.place);
        let group = self.core(place)?.create_publisher_group(plan.presentation);
        self.groups.insert(plan.name.clone(), (place, group));
        Ok(())
    }

    fn create(&mut self, plan: &EndpointPlan) -> Result<(), Trip> {
        if self.players.contains_key(&plan.name) {
            return Err(Trip::Wrong(format!("there is a {} already", plan.name)));
        }
        let place = self.place(plan.place);
        let core = self.core(place)?;
        let options = &plan.options;
        let wrong = |error: pteros_rmw::qos::QosError| {
            Trip::Refused(error.policy.to_lowercase(), error.to_string())
        };
        options.qos.validate().map_err(wrong)?;
        let ty = sample::ty(options.keyed);
        let is_writer = plan.name.starts_with('w');
        let spec = EndpointSpec {
            topic: options.topic.clone(),
            type_name: match &options.type_name {
                Some(name) => name.clone(),
                None => ty.dds_type_name(),
            },
            qos: match is_writer {
                true => options.qos.to_endpoint(),
                false => options.qos.to_reader(),
            },
            keying: match ty.key_reader() {
                Some(reader) => Keying::Keyed(reader),
                None => Keying::Keyless,
            },
            lifecycle: options.qos.lifecycle(),
            group: match &options.group {
                Some(name) => Some(self.group(name)?.1.clone()),
                None => None,
            },
            subscription_group: None,
            store: None,
            as_bytes: false,
            message_type: MessageType::Dynamic(ty.clone()),
            content_filter: options.filter.as_deref().map(filter_spec),
        };
        let side = match (is_writer, options.paced) {
            (true, true) => core
                .create_paced_writer(spec, &Pace::new(FLOW))
                .map(Side::Writer),
            (true, false) => core.create_writer(spec).map(Side::Writer),
            (false, _) => {
                let wants = Wants::Type(std::any::TypeId::of::<Sample>());
                core.create_reader(spec, wants, false).map(Side::Reader)
            }
        };
        let side = side.map_err(|error| Trip::Refused(endpoint_word(&error), error.to_string()))?;
        self.note(&format!("{} is there", plan.name));
        let player = self.introduce(place, side, plan.clone(), ty);
        self.players.insert(plan.name.clone(), player);
        self.world.settle(place);
        Ok(())
    }

    /// Lets an endpoint's events be written down as they come.
    fn introduce(&self, place: usize, side: Side, plan: EndpointPlan, ty: DynamicType) -> Player {
        let events = side.events().clone();
        let diary = Arc::new(Diary {
            name: plan.name.clone(),
            events: Arc::downgrade(&events),
            world: Arc::downgrade(&self.world),
            log: self.log.clone(),
            start: self.start,
            told: Mutex::default(),
        });
        let task: Arc<dyn Task> = diary.clone();
        events.slot.set_task(Arc::downgrade(&task));
        let queue = self.world.places()[place]
            .life
            .as_ref()
            .map(|life| life.queue.clone());
        events.slot.attach(queue, || !events.is_empty());
        Player {
            place,
            side,
            plan,
            ty,
            diary,
        }
    }

    fn delete(&self, name: &str) -> Result<(), Trip> {
        let player = self.player(name)?;
        let core = self.core(player.place)?;
        match &player.side {
            Side::Writer(writer) => core.remove_writer(writer),
            Side::Reader(reader) => core.remove_reader(reader),
        }
        self.note(&format!("{name} is deleted"));
        self.settle(player.place);
        Ok(())
    }

    /// After a call: what it reported, and what it left to the driver.
    fn settle(&self, place: usize) {
        self.world.settle(place);
        self.world.turn(place);
    }

    fn group(&self, name: &str) -> Result<&(usize, Arc<PublisherGroup>), Trip> {
        let group = self.groups.get(name);
        group.ok_or_else(|| Trip::Wrong(format!("there is no {name}")))
    }

    fn begin(&self, name: &str) -> Result<(), Trip> {
        let (_, group) = self.group(name)?;
        group.begin_coherent_changes().map_err(group_trip)
    }

    fn end(&self, name: &str) -> Result<(), Trip> {
        let (place, group) = self.group(name)?;
        let core = self.core(*place)?;
        group.end_coherent_changes(&core).map_err(group_trip)?;
        self.settle(*place);
        Ok(())
    }

    fn message(player: &Player, key: &str, x: i32) -> Sample {
        let options = &player.plan.options;
        let representation = options.qos.representation.unwrap_or(Representation::Xcdr1);
        Sample::new(&player.ty, key, x, options.size, representation)
    }

    fn write(&self, name: &str, value: &Written) -> Result<(), Trip> {
        let (player, writer) = self.writer(name)?;
        let core = self.core(player.place)?;
        let mut message = Self::message(player, &value.key, value.x);
        let stamp = core.env.wall().as_nanos().saturating_add(value.stamp);
        self.published(player.place, || {
            let message: &mut dyn Outgoing = &mut message;
            core.publish(writer, message, Timestamp::from_nanos(stamp))
                .map(drop)
        })
    }

    /// Publishes; the world goes on while that waits.
    fn published(
        &self,
        place: usize,
        publish: impl FnOnce() -> Result<(), PublishError>,
    ) -> Result<(), Trip> {
        self.world.places()[place].blocked = true;
        let outcome = publish();
        self.world.places()[place].blocked = false;
        self.settle(place);
        outcome.map_err(|error| Trip::Refused(publish_word(&error).into(), error.to_string()))
    }

    fn treat_instance(&self, name: &str, deed: Instance, key: &str) -> Result<(), Trip> {
        let (player, writer) = self.writer(name)?;
        let core = self.core(player.place)?;
        let key = Self::message(player, key, 0).key();
        let now = core.env.wall();
        self.published(player.place, || match deed {
            Instance::Dispose => core.end_instance(writer, Ending::Dispose, key, now),
            Instance::Unregister => core.end_instance(writer, Ending::Unregister, key, now),
            Instance::Register => core.register_instance(writer, key),
        })
    }

    fn assert_liveliness(&self, name: &str) -> Result<(), Trip> {
        let (player, writer) = self.writer(name)?;
        self.core(player.place)?.assert_liveliness(writer);
        self.settle(player.place);
        Ok(())
    }

    fn flush(&self, name: &str) -> Result<(), Trip> {
        let (player, writer) = self.writer(name)?;
        self.core(player.place)?.flush(writer);
        self.settle(player.place);
        Ok(())
    }

    fn filter(&self, name: &str, text: &str) -> Result<(), Trip> {
        let (player, reader) = self.reader(name)?;
        let core = self.core(player.place)?;
        core.set_content_filter(reader, &filter_spec(text))
            .map_err(|error| Trip::Refused(endpoint_word(&error), error.to_string()))?;
        self.settle(player.place);
        Ok(())
    }

    fn set(&mut self, name: &str, changes: &[(String, Option<String>)]) -> Result<(), Trip> {
        let player = self.player(name)?;
        let core = self.core(player.place)?;
        let mut options = player.plan.options.clone();
        for (option, value) in changes {
            options.set(option, value.as_deref()).map_err(Trip::Wrong)?;
        }
        let set = match &player.side {
            Side::Writer(writer) => core.set_writer_qos(writer, &options.qos),
            Side::Reader(reader) => core.set_reader_qos(reader, &options.qos),
        };
        let place = player.place;
        set.map_err(|error| Trip::Refused(change_word(&error), error.to_string()))?;
        if let Some(player) = self.players.get_mut(name) {
            player.plan.options = options;
        }
        self.note(&format!("{name} has other policies"));
        self.settle(place);
        Ok(())
    }

    fn take(&self, name: &str, all: bool, expected: &[Taken]) -> Result<(), Trip> {
        let (player, reader) = self.reader(name)?;
        let core = self.core(player.place)?;
        let mut seen = Vec::new();
        while all || seen.len() < expected.len() {
            let Some(item) = core.take(reader) else { break };
            seen.push(sample::told(&player.ty, &item).map_err(Trip::Wrong)?);
        }
        self.settle(player.place);
        let line: Vec<_> = seen.iter().map(brief).collect();
        let line = match line.is_empty() {
            true => "nothing".into(),
            false => line.join(" "),
        };
        self.note(&format!("{name} takes {line}"));
        let fits = |(taken, seen): (&Taken, &(String, Vec<String>))| {
            taken.what == seen.0 && taken.traits.iter().all(|word| seen.1.contains(word))
        };
        match seen.len() == expected.len() && expected.iter().zip(&seen).all(fits) {
            true => Ok(()),
            false => Err(Trip::Wrong(format!("took {line}"))),
        }
    }

    /// The value of a status or counter as it is.
    fn status(player: &Player, name: &'static str) -> Expected {
        let counter = match &player.side {
            Side::Writer(writer) => seen::of_writer(writer, name),
            Side::Reader(reader) => seen::of_reader(reader, name),
        };
        let told = player.diary.told.lock();
        let value = match (counter, told.latest.get(name)) {
            (Some(counter), _) => counter.to_string(),
            (None, Some(latest)) => latest.value.clone(),
            (None, None) => seen::untold(name).into(),
        };
        Expected { name, value }
    }

    fn judge_status(&self, name: &str, expected: &[Expected]) -> Result<(), Trip> {
        let player = self.player(name)?;
        let is = expected.iter().map(|e| Self::status(player, e.name));
        let is: Vec<_> = is.collect();
        match expected.iter().zip(&is).all(|(e, is)| e.matches(is)) {
            true => Ok(()),
            false => Err(Trip::Wrong(format!("{name} has {}", line(&is)))),
        }
    }

    fn judge_events(&self, name: &str, expected: &[Expected]) -> Result<(), Trip> {
        let player = self.player(name)?;
        let new = std::mem::take(&mut player.diary.told.lock().new);
        let pairs = || expected.iter().zip(&new);
        match new.len() == expected.len() && pairs().all(|(e, seen)| e.matches(seen)) {
            true => Ok(()),
            false => Err(Trip::Wrong(format!("{name} told {}", line(&new)))),
        }
    }

    fn end_context(&mut self, place: usize, politely: bool) -> Result<(), Trip> {
        self.core(place)?;
        self.world.end(place, politely);
        self.players.retain(|_, player| player.place != place);
        self.groups.retain(|_, (at, _)| *at != place);
        Ok(())
    }

    fn start_again(&mut self, place: usize) -> Result<(), Trip> {
        if self.core(place).is_ok() {
            return Err(Trip::Wrong("this context runs already".into()));
        }
        self.open(place);
        Ok(())
    }
}

/// How many contexts a scenario speaks of; at least a and b.
fn places(scenario: &Scenario) -> usize {
    let last = scenario.steps.iter().map(|step| match &step.verb {
        Verb::Create(endpoints, groups) => {
            let endpoints = endpoints.iter().map(|plan| plan.place);
            let groups = groups.iter().map(|plan| plan.place);
            endpoints.chain(groups).max().unwrap_or(0)
        }
        Verb::Crash(place) | Verb::Leave(place) | Verb::Start(place) | Verb::Wall(place, _) => {
            *place
        }
        Verb::Trouble(links, _) => {
            let ends = links.iter().flat_map(|(from, to)| [*from, *to]);
            ends.max().unwrap_or(0)
        }
        _ => 0,
    });
    last.max().unwrap_or(0).max(1) + 1
}

fn bring(link: &mut Link, trouble: Trouble) {
    match trouble {
        Trouble::Cut => link.cut = true,
        Trouble::Lose(share) => link.loss = share,
        Trouble::Repeat(share) => link.duplicate = share,
        Trouble::Delay(nanos) => link.delay = nanos,
        Trouble::Jitter(nanos) => link.jitter = nanos,
    }
}

fn filter_spec(text: &str) -> FilterSpec {
    FilterSpec {
        expression: text.into(),
        parameters: Vec::new(),
    }
}

fn line(seen: &[Expected]) -> String {
    let all: Vec<_> = seen.iter().map(Expected::to_string).collect();
    match all.is_empty() {
        true => "nothing".into(),
        false => all.join(" "),
    }
}

fn brief((what, traits): &(String, Vec<String>)) -> String {
    [std::slice::from_ref(what), traits].concat().join("/")
}

fn group_trip(error: GroupError) -> Trip {
    Trip::Refused(group_word(error).into(), error.to_string())
}

fn group_word(error: GroupError) -> &'static str {
    match error {
        GroupError::NotCoherent => "not_coherent",
        GroupError::NothingBegun => "nothing_begun",
        GroupError::TooDeep { .. } => "too_deep",
        GroupError::SetOpen => "set_open",
    }
}

fn change_word(error: &QosChangeError) -> String {
    match error {
        QosChangeError::Immutable(fixed) => {
            let names: Vec<_> = fixed.iter().map(|f| f.policy.to_lowercase()).collect();
            names.join("+")
        }
        QosChangeError::Contradiction(error) => error.policy.to_lowercase(),
        QosChangeError::SetOpen => "set_open".into(),
        QosChangeError::ShutDown => "shut_down".into(),
        QosChangeError::Denied(_) => "denied".into(),
    }
}

fn endpoint_word(error: &EndpointError) -> String {
    match error {
        EndpointError::Group(error) => group_word(*error),
        EndpointError::Filter(_) => "filter",
        EndpointError::Store(_) => "store",
        EndpointError::ShutDown => "shut_down",
        EndpointError::TooMany { .. } => "too_many",
        EndpointError::NoSuchFlowController { .. } => "no_such_flow_controller",
        EndpointError::Denied(_) => "denied",
        EndpointError::Keys(_) => "no_keys",
    }
    .into()
}

fn publish_word(error: &PublishError) -> &'static str {
    match error {
        PublishError::ShutDown => "shut_down",
        PublishError::TimedOut { .. } => "timed_out",
        PublishError::NoKey { .. } => "no_key",
        PublishError::UnknownInstance { .. } => "unknown_instance",
        PublishError::TooManyInstances { .. } => "too_many_instances",
        PublishError::TooLarge { .. } => "too_large",
        PublishError::Invalid { .. } => "invalid",
        PublishError::NoSharedMemory { .. } => "no_shared_memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_travel_by_links_where_a_line_is_played_on_them() {
        let line = "samples_travel: w+r(reliable); w.write 1 2 3; r.take 1 2 3";
        let scenario = &crate::scenario::read(line).unwrap()[0];
        assert_eq!(scenario.ways, [Way::Local, Way::Net, Way::Link]);
        for (way, by_links) in [(Way::Net, false), (Way::Link, true)] {
            let mut stage = Stage::new(scenario, way);
            for step in &scenario.steps {
                assert!(stage.carry_out(step).is_ok());
                stage.pass(&step.verb).unwrap();
            }
            let records = stage.world.network().traffic.records;
            assert_eq!(records >= 3, by_links, "{records} by links on {way:?}");
        }
    }
}
