//! The world of a scenario: its contexts, with a log of every event and status.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration as Span;

use parking_lot::Mutex;
use pteros_msg::cdr::Representation;
use pteros_msg::dynamic::DynamicType;
use pteros_rtps::time::{Duration, Timestamp};
use pteros_runtime::content_filter::{FilterSpec, MessageType};
use pteros_runtime::error::{EndpointError, GroupError, PublishError, QosChangeError};
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController};
use pteros_runtime::instance::{InstanceEnd, TopicKey};
use pteros_runtime::publisher_group::PublisherGroup;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::Task;
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};
use pteros_runtime::{Core, CoreOptions, EndpointSpec};

use super::policies::{EndpointPlan, GroupPlan};
use super::sample::{self, Sample};
use super::statuses::{self, Expected};
use super::step::{
    ExpectedSample, InstanceOperation, LinkFault, Scenario, ScenarioPath, ScenarioStep, Verb,
    WriteValue,
};
use super::{Failure, STEP_MILLIS};
use crate::harness::{Check, Counts, World};
use crate::network::link::Link;
use crate::network::trace::Trace;
use crate::simulation::contexts::StartOptions;
use crate::simulation::event_loop::EventLoop;

const MILLI: u64 = 1_000_000;

/// Time for discovery before the first step.
const DISCOVERY_MILLIS: u64 = 500;

/// Participant lease.
const LEASE: Duration = Duration::from_secs(10);

/// Latency of a datagram in nanoseconds.
const DELAY: u64 = 100_000;

/// Name of the flow controller of asynchronous writers.
const FLOW_CONTROLLER: &str = "flow";

/// Why a step did not succeed.
enum StepError {
    /// Refused by the engine: a word for the error, and its text.
    Refused(String, String),
    /// Not as expected, or impossible.
    Failed(String),
}

/// Everything observed, with its time.
type Log = Arc<Mutex<Vec<String>>>;

/// An endpoint of the engine.
#[derive(Clone)]
enum EndpointHandle {
    Writer(Arc<WriterEndpoint>),
    Reader(Arc<ReaderEndpoint>),
}

impl EndpointHandle {
    fn events(&self) -> &Arc<EndpointEvents> {
        match self {
            Self::Writer(writer) => &writer.events,
            Self::Reader(reader) => &reader.events,
        }
    }
}

struct ScenarioEndpoint {
    process: usize,
    handle: EndpointHandle,
    plan: EndpointPlan,
    ty: DynamicType,
    recorder: Arc<EventRecorder>,
}

/// Records the events of an endpoint.
struct EventRecorder {
    name: String,
    events: Weak<EndpointEvents>,
    world: Weak<EventLoop>,
    log: Log,
    start: u64,
    reported: Mutex<ReportedEvents>,
}

#[derive(Default)]
struct ReportedEvents {
    latest: BTreeMap<&'static str, Expected>,
    /// Since the last look.
    new: Vec<Expected>,
}

impl Task for EventRecorder {
    fn run(&self) {
        let (Some(events), Some(world)) = (self.events.upgrade(), self.world.upgrade()) else {
            return;
        };
        events.slot.begin_take();
        let mut reported = self.reported.lock();
        while let Some(event) = events.take() {
            let seen = statuses::event(&event);
            log_line(
                &self.log,
                &world,
                self.start,
                &format!("{}! {seen}", self.name),
            );
            reported.latest.insert(seen.name, seen.clone());
            reported.new.push(seen);
        }
    }
}

fn log_line(log: &Log, world: &EventLoop, start: u64, line: &str) {
    let micros = world.now().saturating_sub(start) / 1_000;
    let (millis, micros) = (micros / 1_000, micros % 1_000);
    log.lock()
        .push(format!("{millis:>6}.{micros:03} ms  {line}"));
}

/// A running scenario.
pub struct ScenarioWorld {
    scenario: Scenario,
    path: ScenarioPath,
    world: Arc<EventLoop>,
    start: u64,
    log: Log,
    endpoints: BTreeMap<String, ScenarioEndpoint>,
    groups: BTreeMap<String, (usize, Arc<PublisherGroup>)>,
    /// The step that was applied last.
    step: usize,
    /// Why it was not as expected.
    reason: Option<String>,
}

impl World for ScenarioWorld {
    fn event_loop(&self) -> &EventLoop {
        &self.world
    }

    /// Discovery comes first, then the steps of the line until one fails.
    fn apply(&mut self, step: usize) -> Option<u64> {
        let Some(index) = step.checked_sub(1) else {
            let contexts = self.world.processes().len();
            (0..contexts).for_each(|process| self.open(process));
            return Some(DISCOVERY_MILLIS * MILLI);
        };
        if index == 0 {
            self.start = self.world.now();
        }
        if self.world.has_failed() {
            return None;
        }
        let step = self.scenario.steps.get(index)?.clone();
        self.step = index;
        let done = self.run_step(&step);
        let checked = match (done, &step.refused) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(refused)) => Err(format!("not refused, {refused} was expected")),
            (Err(StepError::Refused(word, _)), Some(refused)) if word == *refused => Ok(()),
            (Err(StepError::Refused(word, why)), _) => Err(format!("refused, {word}: {why}")),
            (Err(StepError::Failed(reason)), _) => Err(reason),
        };
        if let Err(reason) = checked {
            let name = self.name();
            let line = self.scenario.line;
            let step = index + 1;
            self.world
                .report([format!("S1 line {line}, {name}, step {step}: {reason}")]);
            self.reason = Some(reason);
            return None;
        }
        Some(match step.verb {
            Verb::Wait(nanos) => nanos,
            _ => STEP_MILLIS * MILLI,
        })
    }

    fn checks(&self, _step: usize) -> Vec<Check<'_>> {
        Vec::new()
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }
}

impl ScenarioWorld {
    /// A world in which no context is open yet. `seed` drives link faults.
    pub fn new(scenario: &Scenario, path: ScenarioPath, seed: u64, trace: Trace) -> Self {
        let contexts = match path {
            ScenarioPath::Local => 1,
            ScenarioPath::Network | ScenarioPath::SharedMemory => context_count(scenario),
        };
        let hosts: Vec<u8> = match path {
            ScenarioPath::SharedMemory => vec![1; contexts],
            _ => (1u8..).take(contexts).collect(),
        };
        let world = EventLoop::new(&hosts, seed, trace);
        world.network().in_order = true;
        Self {
            scenario: scenario.clone(),
            path,
            start: world.now(),
            world,
            log: Log::default(),
            endpoints: BTreeMap::new(),
            groups: BTreeMap::new(),
            step: 0,
            reason: None,
        }
    }

    /// Name and path of the scenario.
    fn name(&self) -> String {
        format!("{} [{}]", self.scenario.name, self.path.name())
    }

    /// The failure that a violation stands for.
    pub fn failure(&self, violation: &str) -> Failure {
        let invariant = || format!("an invariant is violated: {violation}");
        Failure {
            scenario: self.name(),
            line: self.scenario.line,
            text: self.scenario.text.clone(),
            column: self
                .scenario
                .steps
                .get(self.step)
                .map_or(1, |step| step.column),
            step: self.step + 1,
            reason: self.reason.clone().unwrap_or_else(invariant),
            log: self.log.lock().clone(),
        }
    }

    fn open(&mut self, process: usize) {
        let flow = FlowController::new(FLOW_CONTROLLER)
            .bytes_per_period(10_000)
            .period(Span::from_millis(10));
        let mut options = CoreOptions {
            lease: LEASE,
            flow_controllers: vec![flow],
            ..CoreOptions::default()
        };
        options.shared_memory.enabled = self.path == ScenarioPath::SharedMemory;
        self.world.start(process, StartOptions::default(), options);
    }

    fn log_line(&self, line: &str) {
        log_line(&self.log, &self.world, self.start, line);
    }

    /// The process of a context on this path.
    fn process(&self, process: usize) -> usize {
        match self.path {
            ScenarioPath::Local => 0,
            ScenarioPath::Network | ScenarioPath::SharedMemory => process,
        }
    }

    fn core(&self, process: usize) -> Result<Arc<Core>, StepError> {
        let letter = char::from(b'a' + u8::try_from(process).unwrap_or(0));
        let core = self.world.core(process);
        core.ok_or_else(|| StepError::Failed(format!("context {letter} does not run")))
    }

    fn endpoint(&self, name: &str) -> Result<&ScenarioEndpoint, StepError> {
        let endpoint = self.endpoints.get(name);
        endpoint.ok_or_else(|| StepError::Failed(format!("there is no {name}")))
    }

    fn writer(&self, name: &str) -> Result<(&ScenarioEndpoint, &Arc<WriterEndpoint>), StepError> {
        let endpoint = self.endpoint(name)?;
        match &endpoint.handle {
            EndpointHandle::Writer(writer) => Ok((endpoint, writer)),
            EndpointHandle::Reader(_) => Err(StepError::Failed(format!("{name} is no writer"))),
        }
    }

    fn reader(&self, name: &str) -> Result<(&ScenarioEndpoint, &Arc<ReaderEndpoint>), StepError> {
        let endpoint = self.endpoint(name)?;
        match &endpoint.handle {
            EndpointHandle::Reader(reader) => Ok((endpoint, reader)),
            EndpointHandle::Writer(_) => Err(StepError::Failed(format!("{name} is no reader"))),
        }
    }

    fn run_step(&mut self, step: &ScenarioStep) -> Result<(), StepError> {
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
            Verb::Instance(name, operation, keys) => {
                let mut each = keys.iter();
                each.try_for_each(|key| self.change_instance(name, *operation, key))
            }
            Verb::Assert(name) => self.with_writer(name, |core, writer| {
                core.discovery().assert_liveliness(writer)
            }),
            Verb::Flush(name) => self.with_writer(name, |core, writer| core.flush(writer)),
            Verb::Filter(name, text) => self.filter(name, text),
            Verb::Set(name, changes) => self.set(name, changes),
            Verb::Wait(_) => Ok(()),
            Verb::Take {
                reader,
                all,
                expected,
            } => self.take(reader, *all, expected),
            Verb::Status(name, expected) => self.check_status(name, expected),
            Verb::Events(name, expected) => self.check_events(name, expected),
            Verb::Begin(name) => self.begin(name),
            Verb::End(name) => self.end(name),
            Verb::Crash(process) => self.stop_context(*process, false),
            Verb::Leave(process) => self.stop_context(*process, true),
            Verb::Start(process) => self.restart_context(*process),
            Verb::WallClock(process, jump) => {
                let process = self.process(*process);
                let before = self.world.wall_offset(process);
                self.world.set_wall_offset(process, before + jump);
                Ok(())
            }
            Verb::LinkFault(links, fault) => {
                for (from, to) in links {
                    apply_link_fault(self.world.network().link_mut(*from, *to), *fault);
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

    fn create_group(&mut self, plan: &GroupPlan) -> Result<(), StepError> {
        let process = self.process(plan.context);
        let group = self
            .core(process)?
            .create_publisher_group(plan.presentation);
        self.groups.insert(plan.name.clone(), (process, group));
        Ok(())
    }

    fn create(&mut self, plan: &EndpointPlan) -> Result<(), StepError> {
        if self.endpoints.contains_key(&plan.name) {
            return Err(StepError::Failed(format!(
                "there is a {} already",
                plan.name
            )));
        }
        let process = self.process(plan.context);
        let core = self.core(process)?;
        let options = &plan.options;
        let wrong = |error: pteros_runtime::qos::QosError| {
            StepError::Refused(error.policy.to_lowercase(), error.to_string())
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
            qos: if is_writer {
                options.qos.to_endpoint()
            } else {
                options.qos.to_reader()
            },
            topic_key: match ty.key_reader() {
                Some(reader) => TopicKey::WithKey(reader),
                None => TopicKey::NoKey,
            },
            lifecycle: options.qos.lifecycle(),
            group: match &options.group {
                Some(name) => Some(self.group(name)?.1.clone()),
                None => None,
            },
            subscription_group: None,
            store: None,
            serialize_only: false,
            message_type: MessageType::Dynamic(ty.clone()),
            content_filter: options.filter.as_deref().map(filter_spec),
        };
        let handle = match (is_writer, options.flow_controlled) {
            (true, true) => core
                .create_flow_controlled_writer(spec, &AsyncPublishMode::new(FLOW_CONTROLLER))
                .map(EndpointHandle::Writer),
            (true, false) => core.create_writer(spec).map(EndpointHandle::Writer),
            (false, _) => {
                let wants = DeliveryForm::Type(std::any::TypeId::of::<Sample>());
                core.create_reader(spec, wants, false)
                    .map(EndpointHandle::Reader)
            }
        };
        let handle = handle.map_err(|error| endpoint_step_error(&error))?;
        self.log_line(&format!("{} is created", plan.name));
        let endpoint = self.record_events(process, handle, plan.clone(), ty);
        self.endpoints.insert(plan.name.clone(), endpoint);
        self.world.drain_ready(process);
        Ok(())
    }

    /// Records the events of an endpoint as they are reported.
    fn record_events(
        &self,
        process: usize,
        handle: EndpointHandle,
        plan: EndpointPlan,
        ty: DynamicType,
    ) -> ScenarioEndpoint {
        let events = handle.events().clone();
        let recorder = Arc::new(EventRecorder {
            name: plan.name.clone(),
            events: Arc::downgrade(&events),
            world: Arc::downgrade(&self.world),
            log: self.log.clone(),
            start: self.start,
            reported: Mutex::default(),
        });
        let task: Arc<dyn Task> = recorder.clone();
        events.slot.set_task(Arc::downgrade(&task));
        let queue = self.world.queue(process);
        events.slot.attach(queue, || !events.is_empty());
        ScenarioEndpoint {
            process,
            handle,
            plan,
            ty,
            recorder,
        }
    }

    fn delete(&self, name: &str) -> Result<(), StepError> {
        let endpoint = self.endpoint(name)?;
        let core = self.core(endpoint.process)?;
        match &endpoint.handle {
            EndpointHandle::Writer(writer) => core.remove_writer(writer),
            EndpointHandle::Reader(reader) => core.remove_reader(reader),
        }
        self.log_line(&format!("{name} is deleted"));
        self.drain_ready(endpoint.process);
        Ok(())
    }

    /// After a call: handles what it reported, and polls the driver.
    fn drain_ready(&self, process: usize) {
        self.world.drain_ready(process);
        self.world.poll_process(process);
    }

    fn group(&self, name: &str) -> Result<&(usize, Arc<PublisherGroup>), StepError> {
        let group = self.groups.get(name);
        group.ok_or_else(|| StepError::Failed(format!("there is no {name}")))
    }

    fn begin(&self, name: &str) -> Result<(), StepError> {
        let (_, group) = self.group(name)?;
        group.begin_coherent_changes().map_err(group_step_error)
    }

    fn end(&self, name: &str) -> Result<(), StepError> {
        let (process, group) = self.group(name)?;
        let core = self.core(*process)?;
        group
            .end_coherent_changes(&core)
            .map_err(group_step_error)?;
        self.drain_ready(*process);
        Ok(())
    }

    fn message(endpoint: &ScenarioEndpoint, key: &str, x: i32) -> Sample {
        let options = &endpoint.plan.options;
        let representation = options.qos.representation.unwrap_or(Representation::Xcdr1);
        Sample::new(&endpoint.ty, key, x, options.size, representation)
    }

    fn write(&self, name: &str, value: &WriteValue) -> Result<(), StepError> {
        let (endpoint, writer) = self.writer(name)?;
        let core = self.core(endpoint.process)?;
        let mut message = Self::message(endpoint, &value.key, value.x);
        let stamp = core
            .platform
            .wall_clock()
            .as_nanos()
            .saturating_add(value.stamp);
        self.published(endpoint.process, || {
            let message: &mut dyn OutboundMessage = &mut message;
            core.publish(writer, message, Timestamp::from_nanos(stamp))
                .map(drop)
        })
    }

    /// Publishes. The world continues while the call blocks.
    fn published(
        &self,
        process: usize,
        publish: impl FnOnce() -> Result<(), PublishError>,
    ) -> Result<(), StepError> {
        let outcome = self.world.blocking(process, publish);
        self.drain_ready(process);
        outcome.map_err(|error| StepError::Refused(publish_word(&error).into(), error.to_string()))
    }

    fn change_instance(
        &self,
        name: &str,
        operation: InstanceOperation,
        key: &str,
    ) -> Result<(), StepError> {
        let (endpoint, writer) = self.writer(name)?;
        let core = self.core(endpoint.process)?;
        let key = Self::message(endpoint, key, 0).key();
        let now = core.platform.wall_clock();
        self.published(endpoint.process, || match operation {
            InstanceOperation::Dispose => core.end_instance(writer, InstanceEnd::Dispose, key, now),
            InstanceOperation::Unregister => {
                core.end_instance(writer, InstanceEnd::Unregister, key, now)
            }
            InstanceOperation::Register => writer.register_instance(key),
        })
    }

    /// Calls the context of a writer.
    fn with_writer(
        &self,
        name: &str,
        call: impl FnOnce(&Core, &Arc<WriterEndpoint>),
    ) -> Result<(), StepError> {
        let (endpoint, writer) = self.writer(name)?;
        call(&*self.core(endpoint.process)?, writer);
        self.drain_ready(endpoint.process);
        Ok(())
    }

    fn filter(&self, name: &str, text: &str) -> Result<(), StepError> {
        let (endpoint, reader) = self.reader(name)?;
        let core = self.core(endpoint.process)?;
        core.set_content_filter(reader, &filter_spec(text))
            .map_err(|error| endpoint_step_error(&error))?;
        self.drain_ready(endpoint.process);
        Ok(())
    }

    fn set(&mut self, name: &str, changes: &[(String, Option<String>)]) -> Result<(), StepError> {
        let endpoint = self.endpoint(name)?;
        let core = self.core(endpoint.process)?;
        let mut options = endpoint.plan.options.clone();
        for (option, value) in changes {
            options
                .set(option, value.as_deref())
                .map_err(StepError::Failed)?;
        }
        let set = match &endpoint.handle {
            EndpointHandle::Writer(writer) => core.set_writer_qos(writer, &options.qos),
            EndpointHandle::Reader(reader) => core.set_reader_qos(reader, &options.qos),
        };
        let process = endpoint.process;
        set.map_err(|error| StepError::Refused(change_word(&error), error.to_string()))?;
        if let Some(endpoint) = self.endpoints.get_mut(name) {
            endpoint.plan.options = options;
        }
        self.log_line(&format!("{name} has new policies"));
        self.drain_ready(process);
        Ok(())
    }

    fn take(&self, name: &str, all: bool, expected: &[ExpectedSample]) -> Result<(), StepError> {
        let (endpoint, reader) = self.reader(name)?;
        let core = self.core(endpoint.process)?;
        let mut seen = Vec::new();
        while all || seen.len() < expected.len() {
            let Some(item) = core.taking().take(reader) else {
                break;
            };
            seen.push(sample::sample_notation(&endpoint.ty, &item).map_err(StepError::Failed)?);
        }
        self.drain_ready(endpoint.process);
        let line: Vec<_> = seen.iter().map(sample_text).collect();
        let line = if line.is_empty() {
            "nothing".into()
        } else {
            line.join(" ")
        };
        self.log_line(&format!("{name} takes {line}"));
        let fits = |(taken, seen): (&ExpectedSample, &(String, Vec<String>))| {
            taken.what == seen.0 && taken.traits.iter().all(|word| seen.1.contains(word))
        };
        if seen.len() == expected.len() && expected.iter().zip(&seen).all(fits) {
            Ok(())
        } else {
            Err(StepError::Failed(format!("took {line}")))
        }
    }

    /// The current value of a status or counter.
    fn status(endpoint: &ScenarioEndpoint, name: &'static str) -> Expected {
        let counter = match &endpoint.handle {
            EndpointHandle::Writer(writer) => statuses::of_writer(writer, name),
            EndpointHandle::Reader(reader) => statuses::of_reader(reader, name),
        };
        let reported = endpoint.recorder.reported.lock();
        let value = match (counter, reported.latest.get(name)) {
            (Some(counter), _) => counter.to_string(),
            (None, Some(latest)) => latest.value.clone(),
            (None, None) => statuses::initial_value(name).into(),
        };
        Expected { name, value }
    }

    fn check_status(&self, name: &str, expected: &[Expected]) -> Result<(), StepError> {
        let endpoint = self.endpoint(name)?;
        let is = expected.iter().map(|e| Self::status(endpoint, e.name));
        let is: Vec<_> = is.collect();
        if expected.iter().zip(&is).all(|(e, is)| e.matches(is)) {
            Ok(())
        } else {
            Err(StepError::Failed(format!("{name} has {}", line(&is))))
        }
    }

    fn check_events(&self, name: &str, expected: &[Expected]) -> Result<(), StepError> {
        let endpoint = self.endpoint(name)?;
        let new = std::mem::take(&mut endpoint.recorder.reported.lock().new);
        let pairs = || expected.iter().zip(&new);
        if new.len() == expected.len() && pairs().all(|(e, seen)| e.matches(seen)) {
            Ok(())
        } else {
            Err(StepError::Failed(format!("{name} reported {}", line(&new))))
        }
    }

    fn stop_context(&mut self, process: usize, gracefully: bool) -> Result<(), StepError> {
        self.core(process)?;
        self.world.end(process, gracefully);
        self.endpoints
            .retain(|_, endpoint| endpoint.process != process);
        self.groups.retain(|_, (at, _)| *at != process);
        Ok(())
    }

    fn restart_context(&mut self, process: usize) -> Result<(), StepError> {
        if self.core(process).is_ok() {
            return Err(StepError::Failed("this context runs already".into()));
        }
        self.open(process);
        Ok(())
    }
}

/// The number of contexts in a scenario; at least a and b.
fn context_count(scenario: &Scenario) -> usize {
    let last = scenario.steps.iter().map(|step| match &step.verb {
        Verb::Create(endpoints, groups) => {
            let endpoints = endpoints.iter().map(|plan| plan.context);
            let groups = groups.iter().map(|plan| plan.context);
            endpoints.chain(groups).max().unwrap_or(0)
        }
        Verb::Crash(process)
        | Verb::Leave(process)
        | Verb::Start(process)
        | Verb::WallClock(process, _) => *process,
        Verb::LinkFault(links, _) => {
            let ends = links.iter().flat_map(|(from, to)| [*from, *to]);
            ends.max().unwrap_or(0)
        }
        _ => 0,
    });
    last.max().unwrap_or(0).max(1) + 1
}

fn apply_link_fault(link: &mut Link, fault: LinkFault) {
    match fault {
        LinkFault::Cut => link.cut = true,
        LinkFault::Lose(share) => link.loss = share,
        LinkFault::Repeat(share) => link.duplicate = share,
        LinkFault::Delay(nanos) => link.delay = nanos,
        LinkFault::Jitter(nanos) => link.jitter = nanos,
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
    if all.is_empty() {
        "nothing".into()
    } else {
        all.join(" ")
    }
}

fn sample_text((what, traits): &(String, Vec<String>)) -> String {
    [std::slice::from_ref(what), traits].concat().join("/")
}

fn endpoint_step_error(error: &EndpointError) -> StepError {
    StepError::Refused(endpoint_word(error).into(), error.to_string())
}

fn group_step_error(error: GroupError) -> StepError {
    StepError::Refused(group_word(error).into(), error.to_string())
}

fn group_word(error: GroupError) -> &'static str {
    match error {
        GroupError::NotCoherent => "not_coherent",
        GroupError::NotBegun => "nothing_begun",
        GroupError::NestedTooDeep { .. } => "too_deep",
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

fn endpoint_word(error: &EndpointError) -> &'static str {
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
