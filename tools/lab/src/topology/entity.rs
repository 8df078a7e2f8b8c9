//! The publishers, subscriptions, clients and servers of one process.
//!
//! Messages with the framework's header carry their timestamp and number. For
//! others the source timestamp and sequence number of RTPS are used.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use parking_lot::Mutex;
use pteros::action::ActionServerOptions;
use pteros::interfaces::example_interfaces::action::Fibonacci;
use pteros::msg::dynamic::{DynamicMessage, DynamicService, DynamicType, Value};
use pteros::msg::library::InterfaceLibrary;
use pteros::{
    Client, ClientOptions, Context, NamedQosExt, Node, Publisher, PublisherOptions, Sample,
    Service, ServiceOptions, Subscription, SubscriptionOptions, Timer,
    action::{ActionServer, ServerGoalHandle},
};

use super::clock::RunClock;
use super::document::{
    ClientSpec, NodeSpec, PassBy, PublisherSpec, ServerSpec, SubscriptionSpec, Topology,
};
use super::message::{header, payload_bytes, stamp, stamp_from_header, stamp_from_wire};
use super::pairs::matching_subscriptions;
use super::result::{Event, Row};
use super::tracker::{SampleAssessment, TopicLoad, Tracker};
use super::types;

/// Maximum events that are kept. Later ones are counted.
const EVENTS_MAX: usize = 50_000;

/// All entities of a process.
pub(super) struct GraphEntities {
    shared: Arc<Shared>,
    library: InterfaceLibrary,
    nodes: Vec<Node>,
    publishers: Vec<PeriodicPublisher>,
    clients: Vec<PeriodicClient>,
    subscriptions: Vec<Subscription<DynamicMessage>>,
    servers: Vec<Service<DynamicService>>,
    actions: Vec<ActionServer<Fibonacci>>,
    trackers: Vec<(&'static str, Arc<Mutex<Tracker>>)>,
    timers: Vec<Timer>,
}

/// State that callbacks share.
struct Shared {
    clock: RunClock,
    running: AtomicBool,
    began_ns: AtomicI64,
    /// Received messages and responses. Unchanged for a while means that traffic has ended.
    received: AtomicU64,
    publish_errors: AtomicU64,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    kept: Vec<Event>,
    dropped: u64,
}

struct PeriodicPublisher {
    node: Node,
    publisher: Publisher<DynamicMessage>,
    ty: DynamicType,
    spec: PublisherSpec,
    /// Number of matching subscriptions in the run.
    subscriptions_expected: usize,
    tracker: Arc<Mutex<Tracker>>,
}

struct PeriodicClient {
    node: Node,
    client: Client<DynamicService>,
    ty: DynamicService,
    spec: ClientSpec,
    /// Whether its server is part of the run.
    served: bool,
    tracker: Arc<Mutex<Tracker>>,
}

impl Shared {
    fn record_event(&self, caller: String, code: u8, description: String) {
        let mut events = self.events.lock();
        if events.kept.len() >= EVENTS_MAX {
            events.dropped += 1;
            return;
        }
        let since = self.clock.now_ns() - self.began_ns.load(Ordering::Relaxed);
        events.kept.push(Event {
            time_ms: u64::try_from(since / 1_000_000).unwrap_or(0),
            caller,
            code,
            description,
        });
    }

    /// Records the events of message `number`.
    fn record_assessment(
        &self,
        tracker: &Tracker,
        assessment: SampleAssessment,
        number: u64,
        latency_us: u64,
    ) {
        let caller = || format!("{}->{}", tracker.entity, tracker.node);
        match assessment.lost {
            0 => {}
            1 => self.record_event(caller(), 3, format!("msg {} lost.", number - 1)),
            lost => {
                let text = format!("msgs {} to {} lost.", number - lost, number - 1);
                self.record_event(caller(), 3, text);
            }
        }
        if let Some(most) = assessment.late_over_us {
            self.record_event(
                caller(),
                1,
                format!("msg {number} late. {latency_us}us > {most}us"),
            );
        }
        if let Some(most) = assessment.too_late_over_us {
            let text = format!("msg {number} too late. {latency_us}us > {most}us");
            self.record_event(caller(), 2, text);
        }
    }
}

impl GraphEntities {
    pub(super) fn new(clock: RunClock, library: InterfaceLibrary) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                running: AtomicBool::new(false),
                began_ns: AtomicI64::new(clock.now_ns()),
                received: AtomicU64::new(0),
                publish_errors: AtomicU64::new(0),
                events: Mutex::default(),
            }),
            library,
            nodes: Vec::new(),
            publishers: Vec::new(),
            clients: Vec::new(),
            subscriptions: Vec::new(),
            servers: Vec::new(),
            actions: Vec::new(),
            trackers: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// Creates the entities of `spec` on `node`.
    pub(super) fn add(&mut self, node: Node, spec: &NodeSpec, all: &[Topology]) -> Result<()> {
        let of_node = || format!("node \"{}\"", spec.name);
        for publisher in &spec.publishers {
            self.publisher(&node, spec, publisher, all)
                .with_context(of_node)?;
        }
        for subscription in &spec.subscriptions {
            self.subscription(&node, spec, subscription, all)
                .with_context(of_node)?;
        }
        for server in &spec.servers {
            self.server(&node, server).with_context(of_node)?;
        }
        for client in &spec.clients {
            self.client(&node, spec, client, all)
                .with_context(of_node)?;
        }
        for action in &spec.actions {
            let options = ActionServerOptions::<Fibonacci>::new(action);
            // No client exists. A goal would succeed at once.
            let done = |goal: ServerGoalHandle<Fibonacci>| {
                let _ = goal.succeed(Default::default());
            };
            let server = node.create_action_server(options, done);
            self.actions.push(server.with_context(of_node)?);
        }
        self.nodes.push(node);
        Ok(())
    }

    fn tracker(&mut self, kind: &'static str, node: &str, entity: &str) -> Arc<Mutex<Tracker>> {
        let tracker = Arc::new(Mutex::new(Tracker::new(node, entity)));
        self.trackers.push((kind, tracker.clone()));
        tracker
    }

    fn ty(&self, name: &str) -> Result<DynamicType> {
        let described = self.library.describe(name).map_err(|e| anyhow!("{e}"))?;
        DynamicType::new(&described).map_err(|e| anyhow!("{e}"))
    }

    fn publisher(
        &mut self,
        node: &Node,
        of: &NodeSpec,
        spec: &PublisherSpec,
        all: &[Topology],
    ) -> Result<()> {
        let ty = self.ty(&spec.ty)?;
        let publisher = node.create_publisher(PublisherOptions::of_type(
            &ty,
            spec.topic.as_str().qos(spec.qos.clone()),
        ))?;
        let tracker = self.tracker("publisher", &of.name, &spec.topic);
        self.publishers.push(PeriodicPublisher {
            node: node.clone(),
            publisher,
            ty,
            spec: spec.clone(),
            subscriptions_expected: matching_subscriptions(spec, all),
            tracker,
        });
        Ok(())
    }

    fn subscription(
        &mut self,
        node: &Node,
        of: &NodeSpec,
        spec: &SubscriptionSpec,
        all: &[Topology],
    ) -> Result<()> {
        let ty = self.ty(&spec.ty)?;
        let tracker = self.tracker("subscription", &of.name, &spec.topic);
        let shared = self.shared.clone();
        let with_header = types::has_header(&ty);
        // Messages without the framework's header do not carry their frequency.
        let publishers = all
            .iter()
            .flat_map(|t| &t.nodes)
            .flat_map(|n| &n.publishers);
        let period = publishers
            .filter(|p| p.full_topic == spec.full_topic)
            .map(|p| p.period)
            .next();
        let frequency = period.map_or(0.0, |period| 1.0 / period.as_secs_f64());
        let work_ns = i64::try_from(spec.work.as_nanos()).unwrap_or(i64::MAX);
        let callback = move |sample: Sample<DynamicMessage>| {
            let now_ns = shared.clock.now_ns();
            let stamp_info = if with_header {
                stamp_from_header(&sample)
            } else {
                stamp_from_wire(&sample, frequency)
            };
            let Some(stamp_info) = stamp_info else { return };
            let us = u64::try_from((now_ns - stamp_info.sent_ns) / 1_000).unwrap_or(0);
            let mut tracker = tracker.lock();
            let assessment = tracker.scan(
                stamp_info.publisher,
                stamp_info.number,
                now_ns,
                us,
                stamp_info.load,
            );
            shared.received.fetch_add(1, Ordering::Relaxed);
            shared.record_assessment(&tracker, assessment, stamp_info.number, us);
            drop(tracker);
            let until = now_ns + work_ns;
            while shared.clock.now_ns() < until {
                std::hint::spin_loop();
            }
        };
        let topic = spec.topic.as_str().qos(spec.qos.clone());
        let options = SubscriptionOptions::of_type(&ty, topic);
        let subscription = node.create_subscription(options, callback)?;
        self.subscriptions.push(subscription);
        Ok(())
    }

    fn server(&mut self, node: &Node, spec: &ServerSpec) -> Result<()> {
        let ty = DynamicService::new(&self.library, &spec.ty)?;
        let answer = DynamicMessage::new(ty.response());
        let (from, to) = (
            types::has_header(ty.request()),
            types::has_header(ty.response()),
        );
        let clock = self.shared.clock;
        let mut number = 0;
        let serve = move |request: Sample<DynamicMessage>| {
            let mut answer = answer.clone();
            if from && to {
                let frequency = header(&request).and_then(|h| h.field("frequency")?.as_f64());
                let load = TopicLoad {
                    bytes: 0,
                    frequency: frequency.unwrap_or(0.0),
                };
                stamp(&mut answer, clock, number, load);
                number += 1;
            }
            answer
        };
        let service = spec.service.as_str().qos(spec.qos.clone());
        let server = node.create_service(ServiceOptions::of_type(&ty, service), serve)?;
        self.servers.push(server);
        Ok(())
    }

    fn client(
        &mut self,
        node: &Node,
        of: &NodeSpec,
        spec: &ClientSpec,
        all: &[Topology],
    ) -> Result<()> {
        let ty = DynamicService::new(&self.library, &spec.ty)?;
        let service = spec.service.as_str().qos(spec.qos.clone());
        let client = node.create_client(ClientOptions::of_type(&ty, service))?;
        let tracker = self.tracker("client", &of.name, &spec.service);
        let mut servers = all.iter().flat_map(|t| &t.nodes).flat_map(|n| &n.servers);
        self.clients.push(PeriodicClient {
            node: node.clone(),
            client,
            ty,
            served: servers.any(|s| s.full_service == spec.full_service && s.ty == spec.ty),
            spec: spec.clone(),
            tracker,
        });
        Ok(())
    }

    /// Waits until all entities are matched. Returns those that are not.
    pub(super) fn wait_for_discovery(&self, until: Instant, context: &Context) -> Vec<String> {
        let mut unmatched = Vec::new();
        let left = || {
            if context.is_shut_down() {
                Duration::ZERO
            } else {
                until.saturating_duration_since(Instant::now())
            }
        };
        for PeriodicPublisher {
            publisher,
            spec,
            subscriptions_expected,
            tracker,
            ..
        } in &self.publishers
        {
            if !publisher.wait_for_matched(*subscriptions_expected, left()) {
                unmatched.push(format!(
                    "{} of node \"{}\": {} of {subscriptions_expected} subscriptions",
                    spec.topic,
                    tracker.lock().node,
                    publisher.matched_count()
                ));
            }
        }
        for PeriodicClient {
            client,
            spec,
            served,
            tracker,
            ..
        } in &self.clients
        {
            if *served && !client.wait_for_service(left()) {
                let node = &tracker.lock().node;
                unmatched.push(format!("{} of node \"{node}\": its server", spec.service));
            }
        }
        let now = self.shared.clock.now_ns();
        self.shared.began_ns.store(now, Ordering::Relaxed);
        let found = match unmatched.as_slice() {
            [] => "[discovery] completed".into(),
            list => format!("[discovery] incomplete: {}", list.join("; ")),
        };
        self.shared.record_event("SYSTEM".into(), 0, found);
        unmatched
    }

    /// Starts the timers of publishers and clients.
    pub(super) fn start(&mut self) -> Result<()> {
        self.shared.running.store(true, Ordering::Release);
        for publisher in &self.publishers {
            self.timers.push(publisher.start(&self.shared)?);
        }
        for client in &self.clients {
            self.timers.push(client.start(&self.shared)?);
        }
        Ok(())
    }

    /// Stops the timers. Published messages have `wait` to reach reliable readers.
    pub(super) fn stop(&mut self, wait: Duration) {
        self.shared.running.store(false, Ordering::Release);
        self.timers.clear();
        let until = Instant::now() + wait;
        for publisher in &self.publishers {
            let left = until.saturating_duration_since(Instant::now());
            publisher.publisher.wait_for_all_acked(left);
        }
    }

    /// Waits until nothing is in flight: reliable readers have acknowledged
    /// everything, nothing came for `quiet_period`, and executors are idle. At most
    /// `wait`.
    pub(super) fn wait_until_quiet(
        &self,
        quiet_period: Duration,
        wait: Duration,
        context: &Context,
    ) {
        let until = Instant::now() + wait;
        let is_over = || context.is_shut_down() || Instant::now() >= until;
        loop {
            let before = self.shared.received.load(Ordering::Relaxed);
            std::thread::sleep(quiet_period);
            while !self.is_idle(quiet_period) && !is_over() {}
            let is_quiet = before == self.shared.received.load(Ordering::Relaxed);
            if is_quiet || is_over() {
                return;
            }
        }
    }

    /// Whether each executor runs a new task within `timeout`.
    fn is_idle(&self, timeout: Duration) -> bool {
        let marks: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|node| node.spawn(async {}).ok())
            .collect();
        let until = Instant::now() + timeout;
        while marks.iter().any(|mark| !mark.is_done()) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let trackers = self.trackers.iter();
        trackers
            .map(|(kind, tracker)| Row::of(kind, &tracker.lock()))
            .collect()
    }

    pub(super) fn publish_errors(&self) -> u64 {
        self.shared.publish_errors.load(Ordering::Relaxed)
    }

    /// The text of `events.txt`.
    pub(super) fn events(&self) -> String {
        let mut text = format!(
            "{:<11} {:<24} {:<5} Description\n",
            "Time_ms", "Caller", "Code"
        );
        let events = self.shared.events.lock();
        for event in &events.kept {
            let _ = writeln!(text, "{event}");
        }
        if events.dropped > 0 {
            let _ = writeln!(text, "{} later events were not kept", events.dropped);
        }
        text
    }

    /// All recorded latencies as text.
    pub(super) fn samples(&self) -> String {
        let mut text = String::from("kind,node,entity,number,latency_us\n");
        for (kind, tracker) in &self.trackers {
            let tracker = tracker.lock();
            for (number, us) in tracker.samples() {
                let (node, entity) = (&tracker.node, &tracker.entity);
                let _ = writeln!(text, "{kind},{node},{entity},{number},{us}");
            }
        }
        text
    }
}

impl PeriodicPublisher {
    fn start(&self, shared: &Arc<Shared>) -> Result<Timer> {
        let (shared, spec) = (shared.clone(), self.spec.clone());
        let (publisher, tracker) = (self.publisher.clone(), self.tracker.clone());
        let mut template = DynamicMessage::new(&self.ty);
        if types::is_vector(&self.ty) {
            let data = Value::Bytes(vec![0; spec.bytes]);
            template.set("data", data).context("size its data")?;
        }
        let with_header = types::has_header(&self.ty);
        let load = TopicLoad {
            bytes: payload_bytes(&template),
            frequency: 1.0 / spec.period.as_secs_f64(),
        };
        let mut number = 0;
        let publish = move || {
            if !shared.running.load(Ordering::Acquire) {
                return;
            }
            let mut message = template.clone();
            let sent_ns = shared.clock.now_ns();
            if with_header {
                stamp(&mut message, shared.clock, number, load);
            }
            number += 1;
            let outcome = match spec.pass_by {
                PassBy::Owned => publisher.publish_owned(message),
                PassBy::Shared => publisher.publish(&message),
            };
            let now_ns = shared.clock.now_ns();
            let took = u64::try_from((now_ns - sent_ns) / 1_000).unwrap_or(0);
            let mut tracker = tracker.lock();
            match outcome {
                Ok(()) => tracker.published(now_ns, took, load),
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    let caller = format!("{}->{}", tracker.entity, tracker.node);
                    shared.record_event(
                        caller,
                        5,
                        format!("msg {} not published: {error}", number - 1),
                    );
                }
            }
        };
        Ok(self.node.create_timer(self.spec.period, publish)?)
    }
}

impl PeriodicClient {
    fn start(&self, shared: &Arc<Shared>) -> Result<Timer> {
        let (shared, spec) = (shared.clone(), self.spec.clone());
        let (client, tracker, node) =
            (self.client.clone(), self.tracker.clone(), self.node.clone());
        let with_header = types::has_header(self.ty.request());
        let request = DynamicMessage::new(self.ty.request());
        let load = TopicLoad {
            bytes: 0,
            frequency: 1.0 / spec.period.as_secs_f64(),
        };
        let mut number = 0;
        let ask = move || {
            if !shared.running.load(Ordering::Acquire) {
                return;
            }
            let caller = || {
                let tracker = tracker.lock();
                format!("{}->{}", tracker.entity, tracker.node)
            };
            if !client.service_is_ready() {
                let text = format!("[service] '{}' unavailable", spec.service);
                shared.record_event(caller(), 4, text);
                return;
            }
            let mut request = request.clone();
            let sent_ns = shared.clock.now_ns();
            if with_header {
                stamp(&mut request, shared.clock, number, load);
            }
            let own = number;
            number += 1;
            let call = match client.call_async(&request) {
                Ok(call) => call,
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    shared.record_event(caller(), 5, format!("request {own} not sent: {error}"));
                    return;
                }
            };
            let (in_call, tracker) = (shared.clone(), tracker.clone());
            let spawned = node.spawn(async move {
                if call.await.is_err() {
                    return;
                }
                let now_ns = in_call.clock.now_ns();
                let us = u64::try_from((now_ns - sent_ns) / 1_000).unwrap_or(0);
                let mut tracker = tracker.lock();
                let assessment = tracker.scan(0, own, now_ns, us, load);
                in_call.received.fetch_add(1, Ordering::Relaxed);
                in_call.record_assessment(&tracker, assessment, own, us);
            });
            match spawned {
                Ok(handle) => handle.detach(),
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    shared.record_event(
                        "SYSTEM".into(),
                        5,
                        format!("request {own} abandoned: {error}"),
                    );
                }
            }
        };
        Ok(self.node.create_timer(self.spec.period, ask)?)
    }
}
