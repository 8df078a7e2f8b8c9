//! The publishers, subscriptions, clients and servers of one process, and what they
//! note. Messages with the framework's header carry stamp and number in it; of others
//! the wire's own source stamp and number are taken.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use parking_lot::Mutex;
use pteros::interfaces::example_interfaces::action::Fibonacci;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, Value};
use pteros::msg::library::InterfaceLibrary;
use pteros::{
    ActionServer, ActionServerOptions, Context, DynamicClient, DynamicPublisher, DynamicService,
    DynamicServiceType, Node, Sample, ServerGoal, ServiceOptions, Subscription,
    SubscriptionOptions, Timer,
};

use super::clock::RunClock;
use super::document::{
    ClientSpec, NodeSpec, PassBy, PublisherSpec, ServerSpec, SubscriptionSpec, Topology,
};
use super::message::{header, payload_bytes, stamp, told_by_header, told_by_wire};
use super::pairs::subscriptions_met;
use super::result::{Event, Row};
use super::tracker::{Judged, Tracker};
use super::types;

/// Events that are kept; later ones are counted.
const EVENTS_MAX: usize = 50_000;

/// Everything of one process.
pub(super) struct World {
    shared: Arc<Shared>,
    library: InterfaceLibrary,
    nodes: Vec<Node>,
    publishers: Vec<Speaker>,
    clients: Vec<Asker>,
    subscriptions: Vec<Subscription<DynamicMessage>>,
    servers: Vec<DynamicService>,
    actions: Vec<ActionServer<Fibonacci>>,
    trackers: Vec<(&'static str, Arc<Mutex<Tracker>>)>,
    timers: Vec<Timer>,
}

/// What callbacks share.
struct Shared {
    clock: RunClock,
    running: AtomicBool,
    began_ns: AtomicI64,
    /// Messages and answers that came; whoever waits for silence looks at it.
    heard: AtomicU64,
    publish_errors: AtomicU64,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    kept: Vec<Event>,
    dropped: u64,
}

struct Speaker {
    node: Node,
    publisher: DynamicPublisher,
    ty: DynamicType,
    spec: PublisherSpec,
    /// How many subscriptions of the run it meets.
    meets: usize,
    tracker: Arc<Mutex<Tracker>>,
}

struct Asker {
    node: Node,
    client: DynamicClient,
    ty: DynamicServiceType,
    spec: ClientSpec,
    /// Whether the run has its server.
    served: bool,
    tracker: Arc<Mutex<Tracker>>,
}

impl Shared {
    fn note(&self, caller: String, code: u8, description: String) {
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

    /// Writes down what was judged of message `number`.
    fn judged(&self, tracker: &Tracker, judged: Judged, number: u64, latency_us: u64) {
        let caller = || format!("{}->{}", tracker.entity, tracker.node);
        match judged.lost {
            0 => {}
            1 => self.note(caller(), 3, format!("msg {} lost.", number - 1)),
            lost => {
                let text = format!("msgs {} to {} lost.", number - lost, number - 1);
                self.note(caller(), 3, text);
            }
        }
        if let Some(most) = judged.late_over_us {
            self.note(
                caller(),
                1,
                format!("msg {number} late. {latency_us}us > {most}us"),
            );
        }
        if let Some(most) = judged.too_late_over_us {
            let text = format!("msg {number} too late. {latency_us}us > {most}us");
            self.note(caller(), 2, text);
        }
    }
}

impl World {
    pub(super) fn new(clock: RunClock, library: InterfaceLibrary) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                running: AtomicBool::new(false),
                began_ns: AtomicI64::new(clock.now_ns()),
                heard: AtomicU64::new(0),
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

    /// Makes what `spec` lists, on `node`.
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
            let options = ActionServerOptions::<Fibonacci>::default();
            // Nobody asks; whoever does is answered at once.
            let done = |goal: ServerGoal<Fibonacci>| {
                let _ = goal.succeed(Default::default());
            };
            let server = node.create_action_server(action, options, done);
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
        let publisher = node.create_dynamic_publisher(&spec.topic, &ty, spec.qos.clone())?;
        let tracker = self.tracker("publisher", &of.name, &spec.topic);
        self.publishers.push(Speaker {
            node: node.clone(),
            publisher,
            ty,
            spec: spec.clone(),
            meets: subscriptions_met(spec, all),
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
        // Messages without the framework's header do not say how often they come.
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
            let told = match with_header {
                true => told_by_header(&sample),
                false => told_by_wire(&sample, frequency),
            };
            let Some(told) = told else { return };
            let us = u64::try_from((now_ns - told.sent_ns) / 1_000).unwrap_or(0);
            let mut tracker = tracker.lock();
            let judged = tracker.scan(told.publisher, told.number, now_ns, us, told.of);
            shared.heard.fetch_add(1, Ordering::Relaxed);
            shared.judged(&tracker, judged, told.number, us);
            drop(tracker);
            let until = now_ns + work_ns;
            while shared.clock.now_ns() < until {
                std::hint::spin_loop();
            }
        };
        let options = SubscriptionOptions::new(spec.qos.clone()).callback(callback);
        let subscription = node.create_dynamic_subscription(&spec.topic, &ty, options)?;
        self.subscriptions.push(subscription);
        Ok(())
    }

    fn server(&mut self, node: &Node, spec: &ServerSpec) -> Result<()> {
        let ty = DynamicServiceType::new(&self.library, &spec.ty)?;
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
                stamp(&mut answer, clock, number, (0, frequency.unwrap_or(0.0)));
                number += 1;
            }
            answer
        };
        let options = ServiceOptions::new(spec.qos.clone());
        let server = node.create_dynamic_service(&spec.service, &ty, options, serve)?;
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
        let ty = DynamicServiceType::new(&self.library, &spec.ty)?;
        let options = ServiceOptions::new(spec.qos.clone());
        let client = node.create_dynamic_client(&spec.service, &ty, options)?;
        let tracker = self.tracker("client", &of.name, &spec.service);
        let mut servers = all.iter().flat_map(|t| &t.nodes).flat_map(|n| &n.servers);
        self.clients.push(Asker {
            node: node.clone(),
            client,
            ty,
            served: servers.any(|s| s.full_service == spec.full_service && s.ty == spec.ty),
            spec: spec.clone(),
            tracker,
        });
        Ok(())
    }

    /// Waits until everybody has met whom it is to meet; who has not, is told.
    pub(super) fn meet(&self, until: Instant, context: &Context) -> Vec<String> {
        let mut unmet = Vec::new();
        let left = || match context.is_shut_down() {
            true => Duration::ZERO,
            false => until.saturating_duration_since(Instant::now()),
        };
        for Speaker {
            publisher,
            spec,
            meets,
            tracker,
            ..
        } in &self.publishers
        {
            if !publisher.wait_for_matched(*meets, left()) {
                unmet.push(format!(
                    "{} of node \"{}\": {} of {meets} subscriptions",
                    spec.topic,
                    tracker.lock().node,
                    publisher.matched_count()
                ));
            }
        }
        for Asker {
            client,
            spec,
            served,
            tracker,
            ..
        } in &self.clients
        {
            if *served && !client.wait_for_service(left()) {
                let node = &tracker.lock().node;
                unmet.push(format!("{} of node \"{node}\": its server", spec.service));
            }
        }
        let now = self.shared.clock.now_ns();
        self.shared.began_ns.store(now, Ordering::Relaxed);
        let found = match unmet.as_slice() {
            [] => "[discovery] completed".into(),
            list => format!("[discovery] incomplete: {}", list.join("; ")),
        };
        self.shared.note("SYSTEM".into(), 0, found);
        unmet
    }

    /// Publishers publish and clients ask from now on.
    pub(super) fn start(&mut self) -> Result<()> {
        self.shared.running.store(true, Ordering::Release);
        for speaker in &self.publishers {
            self.timers.push(speaker.start(&self.shared)?);
        }
        for asker in &self.clients {
            self.timers.push(asker.start(&self.shared)?);
        }
        Ok(())
    }

    /// No more of that; what was published has `wait` to get to reliable readers.
    pub(super) fn stop(&mut self, wait: Duration) {
        self.shared.running.store(false, Ordering::Release);
        self.timers.clear();
        let until = Instant::now() + wait;
        for speaker in &self.publishers {
            let left = until.saturating_duration_since(Instant::now());
            speaker.publisher.wait_for_all_acked(left);
        }
    }

    /// Waits until what is under way is there: reliable readers have acknowledged all,
    /// then nothing came for `silence` and executors have nothing left. At most `wait`.
    pub(super) fn settle(&self, silence: Duration, wait: Duration, context: &Context) {
        let until = Instant::now() + wait;
        let is_over = || context.is_shut_down() || Instant::now() >= until;
        loop {
            let before = self.shared.heard.load(Ordering::Relaxed);
            std::thread::sleep(silence);
            while !self.is_idle(silence) && !is_over() {}
            let quiet = before == self.shared.heard.load(Ordering::Relaxed);
            if quiet || is_over() {
                return;
            }
        }
    }

    /// Whether each executor comes to a task of ours, put behind all others, within
    /// `patience`.
    fn is_idle(&self, patience: Duration) -> bool {
        let marks: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|node| node.spawn(async {}).ok())
            .collect();
        let until = Instant::now() + patience;
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

    /// `events.txt`.
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

    /// Every latency that was kept.
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

impl Speaker {
    fn start(&self, shared: &Arc<Shared>) -> Result<Timer> {
        let (shared, spec) = (shared.clone(), self.spec.clone());
        let (publisher, tracker) = (self.publisher.clone(), self.tracker.clone());
        let mut template = DynamicMessage::new(&self.ty);
        if types::is_vector(&self.ty) {
            let data = Value::Bytes(vec![0; spec.bytes]);
            template.set("data", data).context("size its data")?;
        }
        let with_header = types::has_header(&self.ty);
        let of = (payload_bytes(&template), 1.0 / spec.period.as_secs_f64());
        let mut number = 0;
        let publish = move || {
            if !shared.running.load(Ordering::Acquire) {
                return;
            }
            let mut message = template.clone();
            let sent_ns = shared.clock.now_ns();
            if with_header {
                stamp(&mut message, shared.clock, number, of);
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
                Ok(()) => tracker.published(now_ns, took, of),
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    let caller = format!("{}->{}", tracker.entity, tracker.node);
                    shared.note(
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

impl Asker {
    fn start(&self, shared: &Arc<Shared>) -> Result<Timer> {
        let (shared, spec) = (shared.clone(), self.spec.clone());
        let (client, tracker, node) =
            (self.client.clone(), self.tracker.clone(), self.node.clone());
        let with_header = types::has_header(self.ty.request());
        let request = DynamicMessage::new(self.ty.request());
        let of = (0, 1.0 / spec.period.as_secs_f64());
        let mut number = 0;
        let ask = move || {
            if !shared.running.load(Ordering::Acquire) {
                return;
            }
            let caller = || {
                let tracker = tracker.lock();
                format!("{}->{}", tracker.entity, tracker.node)
            };
            if !client.is_ready() {
                let text = format!("[service] '{}' unavailable", spec.service);
                shared.note(caller(), 4, text);
                return;
            }
            let mut request = request.clone();
            let sent_ns = shared.clock.now_ns();
            if with_header {
                stamp(&mut request, shared.clock, number, of);
            }
            let own = number;
            number += 1;
            let call = match client.call_async(&request) {
                Ok(call) => call,
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    shared.note(caller(), 5, format!("request {own} not sent: {error}"));
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
                let judged = tracker.scan(0, own, now_ns, us, of);
                in_call.heard.fetch_add(1, Ordering::Relaxed);
                in_call.judged(&tracker, judged, own, us);
            });
            match spawned {
                Ok(handle) => handle.detach(),
                Err(error) => {
                    shared.publish_errors.fetch_add(1, Ordering::Relaxed);
                    shared.note(
                        "SYSTEM".into(),
                        5,
                        format!("request {own} given up: {error}"),
                    );
                }
            }
        };
        Ok(self.node.create_timer(self.spec.period, ask)?)
    }
}
