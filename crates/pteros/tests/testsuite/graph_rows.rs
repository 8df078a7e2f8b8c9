//! The rows of the client core's behaviour table `graph.txt`, on nodes of Rust.
#![allow(
    clippy::disallowed_methods,
    reason = "rows have deadlines of real time"
)]

use std::time::Duration;

use pteros::event_handler::{EndpointEvent, PolicyId};
use pteros::graph::{EndpointInfo, EndpointKind, NodeInfo};
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::names::DdsTopic;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, LivelinessPolicy, ReliabilityPolicy};
use pteros_test_support::behaviour::{GraphDriver, LeftOut, RowQos, play_graph};

/// No other module has it.
const DOMAIN: u32 = 88;

const LEFT_OUT: [LeftOut; 0] = [];

enum Handle {
    Publisher(Publisher<Text>),
    Subscription(Subscription<Text>),
    Server(#[expect(dead_code, reason = "it is dropped")] Service<AddTwoInts>),
    Client(Client<AddTwoInts>),
    Dropped,
}

#[derive(Default)]
struct Statuses {
    matched: String,
    incompatible: String,
    liveliness: String,
}

struct Entity {
    handle: Handle,
    statuses: Statuses,
    taken: Vec<String>,
}

struct Rows {
    entities: Vec<Entity>,
    nodes: Vec<Node>,
    executors: Vec<SingleThreadedExecutor>,
    contexts: Vec<Context>,
}

impl Rows {
    fn new() -> Self {
        let mut rows = Self {
            entities: Vec::new(),
            nodes: Vec::new(),
            executors: Vec::new(),
            contexts: Vec::new(),
        };
        rows.add_context("rows");
        rows
    }

    fn add_context(&mut self, name: &str) {
        let context = Context::with_options(ContextOptions::local(DOMAIN)).unwrap();
        self.executors.push(SingleThreadedExecutor::new(&context));
        self.contexts.push(context);
        self.add_node(NodeOptions::new(name));
    }

    fn add_node(&mut self, options: NodeOptions) {
        let node = self.contexts.last().unwrap().create_node(options).unwrap();
        self.executors.last().unwrap().add_node(&node).unwrap();
        self.nodes.push(node);
    }

    fn node(&self) -> &Node {
        self.nodes.last().unwrap()
    }

    fn create(&self, kind: &str, name: &str, words: &[&str]) -> Handle {
        let (node, qos) = (self.node(), profile(&RowQos::parse(words)));
        match kind {
            "pub" => Handle::Publisher(node.create_publisher(name.qos(qos)).unwrap()),
            "sub" => Handle::Subscription(node.create_polled_subscription(name.qos(qos)).unwrap()),
            "server" => {
                let answer = |_| AddTwoIntsResponse::default();
                Handle::Server(node.create_service::<AddTwoInts>(name, answer).unwrap())
            }
            "client" => Handle::Client(node.create_client(name).unwrap()),
            _ => panic!("{kind}"),
        }
    }

    fn poll(&mut self) {
        for executor in &self.executors {
            executor.spin_some();
        }
        for entity in &mut self.entities {
            match &entity.handle {
                Handle::Publisher(publisher) => {
                    while let Some(event) = publisher.take_event() {
                        entity.statuses.note(&event);
                    }
                }
                Handle::Subscription(subscription) => {
                    while let Some(event) = subscription.take_event() {
                        entity.statuses.note(&event);
                    }
                    while let Some(message) = subscription.take() {
                        entity.taken.push(message.data.clone());
                    }
                }
                _ => {}
            }
        }
    }

    /// All endpoints of nodes, with their names.
    fn endpoints(&self) -> Vec<(String, DdsTopic, EndpointInfo)> {
        let graph = self.contexts.last().unwrap().graph();
        let nodes = graph.nodes().into_iter();
        let of_node = |node: NodeInfo| {
            let name = node.fully_qualified_name();
            let endpoints = graph.endpoints_of_node(&node).into_iter();
            endpoints.map(move |(topic, info)| (name.clone(), topic, info))
        };
        nodes.flat_map(of_node).collect()
    }

    /// The names of endpoints of a kind, of one node or of all.
    fn names_of(&self, kind: &str, node: Option<&str>) -> Vec<String> {
        let endpoints = self.endpoints().into_iter();
        let of_node = endpoints.filter(|(owner, ..)| node.is_none_or(|node| node == owner));
        let name =
            |(_, topic, info): (String, DdsTopic, EndpointInfo)| match (topic, kind, info.kind) {
                (DdsTopic::Topic(name), "publishers", EndpointKind::Publisher)
                | (DdsTopic::Topic(name), "subscriptions", EndpointKind::Subscription)
                | (DdsTopic::ServiceRequest(name), "servers", EndpointKind::Subscription)
                | (DdsTopic::ServiceRequest(name), "clients", EndpointKind::Publisher) => {
                    Some(name)
                }
                _ => None,
            };
        of_node.filter_map(name).collect()
    }

    /// Names without those that each node has.
    fn shown(&self, names: impl IntoIterator<Item = String>) -> String {
        let own = |name: &String| {
            ["/parameter_events", "/rosout"].contains(&name.as_str())
                || self.nodes.iter().any(|node| {
                    name.strip_prefix(&node.fully_qualified_name())
                        .is_some_and(|rest| rest.starts_with('/'))
                })
        };
        let mut names: Vec<_> = names.into_iter().filter(|name| !own(name)).collect();
        names.sort();
        names.dedup();
        names.join(" ")
    }

    fn qos(&self, kind: &str, topic: &str) -> String {
        let graph = self.contexts.last().unwrap().graph();
        let endpoints = match kind {
            "publishers" => graph.publishers(topic),
            _ => graph.subscriptions(topic),
        };
        let shown = |info: &EndpointInfo| {
            let namespace = info.node_namespace.as_deref().unwrap_or_default();
            let name = info.node_name.as_deref().unwrap_or_default();
            row_qos(&info.qos).shown(&format!("{}/{name}", namespace.trim_end_matches('/')))
        };
        let mut shown: Vec<_> = endpoints.iter().map(shown).collect();
        shown.sort();
        shown.join(", ")
    }
}

impl Statuses {
    fn note(&mut self, event: &EndpointEvent) {
        match event {
            EndpointEvent::Matched { total, current, .. } => {
                self.matched = format!("{total} {current}");
            }
            EndpointEvent::IncompatibleQos {
                total, policies, ..
            } => {
                let name = match policies.first() {
                    Some(PolicyId::Durability) => "durability",
                    Some(PolicyId::Deadline) => "deadline",
                    Some(PolicyId::Liveliness) => "liveliness",
                    Some(PolicyId::Reliability) => "reliability",
                    other => panic!("{other:?}"),
                };
                self.incompatible = format!("{total} {name}");
            }
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            } => self.liveliness = format!("{alive} {not_alive}"),
            _ => {}
        }
    }
}

fn profile(row: &RowQos) -> QosProfile {
    if row.best_available {
        return QosProfile::best_available();
    }
    let mut qos = QosProfile::default().keep_last(row.depth.unwrap_or(10) as usize);
    if row.best_effort {
        qos = qos.best_effort();
    }
    if row.transient_local {
        qos = qos.transient_local();
    }
    if row.keep_all {
        qos = qos.keep_all();
    }
    qos.deadline = row.deadline.map(Duration::from_secs);
    qos.lifespan = row.lifespan.map(Duration::from_secs);
    qos.liveliness_lease = row.lease.map(Duration::from_secs);
    if row.manual {
        qos.liveliness = LivelinessPolicy::ManualByTopic;
    }
    qos
}

fn row_qos(qos: &QosProfile) -> RowQos {
    RowQos {
        best_effort: qos.reliability == ReliabilityPolicy::BestEffort,
        transient_local: qos.durability == DurabilityPolicy::TransientLocal,
        manual: qos.liveliness == LivelinessPolicy::ManualByTopic,
        deadline: qos.deadline.map(|span| span.as_secs()),
        lease: qos.liveliness_lease.map(|span| span.as_secs()),
        ..RowQos::default()
    }
}

impl GraphDriver for Rows {
    fn play(&mut self, step: &[&str]) {
        let at = |number: &str| number.parse::<usize>().unwrap() - 1;
        match step {
            ["context", name] => self.add_context(name),
            ["node", namespace, name] => {
                self.add_node(NodeOptions::new(*name).namespace(*namespace));
            }
            ["drop", number] => self.entities[at(number)].handle = Handle::Dropped,
            ["send", number, text] => {
                let Handle::Publisher(publisher) = &self.entities[at(number)].handle else {
                    panic!("no publisher");
                };
                let data = (*text).to_owned();
                publisher.publish(&Text { data }).unwrap();
            }
            [kind, name, words @ ..] => {
                let handle = self.create(kind, name, words);
                self.entities.push(Entity {
                    handle,
                    statuses: Statuses::default(),
                    taken: Vec::new(),
                });
            }
            _ => panic!("{step:?}"),
        }
    }

    fn answer(&mut self, question: &[&str]) -> String {
        self.poll();
        let entity = |number: &str| &self.entities[number.parse::<usize>().unwrap() - 1];
        let graph = self.contexts.last().unwrap().graph();
        match question {
            ["count", kind, name] => {
                let names = self.names_of(kind, None);
                names.iter().filter(|one| one == name).count().to_string()
            }
            ["available", number] => match &entity(number).handle {
                Handle::Client(client) if client.service_is_ready() => "yes".to_owned(),
                Handle::Client(_) => "no".to_owned(),
                _ => panic!("no client"),
            },
            ["matched", number] => match &entity(number).handle {
                Handle::Publisher(publisher) => publisher.matched_count().to_string(),
                Handle::Subscription(subscription) => subscription.matched_count().to_string(),
                _ => panic!("neither publisher nor subscription"),
            },
            ["take", number] => entity(number).taken.join(" "),
            ["qos", kind, topic] => self.qos(kind, topic),
            ["names", kind, node] => {
                let mut nodes = graph.nodes().into_iter();
                if nodes.all(|one| one.fully_qualified_name() != *node) {
                    return "no such node".to_owned();
                }
                self.shown(self.names_of(kind, Some(node)))
            }
            ["topics"] => self.shown(graph.topics().into_iter().map(|topic| topic.name)),
            ["services"] => self.shown(graph.services().into_iter().map(|one| one.name)),
            ["event", number, "matched"] => entity(number).statuses.matched.clone(),
            ["event", number, "incompatible"] => entity(number).statuses.incompatible.clone(),
            ["event", number, "liveliness"] => entity(number).statuses.liveliness.clone(),
            _ => panic!("{question:?}"),
        }
    }
}

#[test]
fn nodes_have_the_rows_of_the_behaviour_table() {
    assert!(play_graph(&LEFT_OUT, Rows::new) > 100);
}
