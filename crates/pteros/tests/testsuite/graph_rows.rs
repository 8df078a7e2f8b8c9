//! The rows of the client core's behaviour tables of nodes and their endpoints, in Rust.
#![allow(
    clippy::disallowed_methods,
    reason = "rows have deadlines of real time"
)]

use std::iter::once;
use std::time::Duration;

use pteros::args::Arguments;
use pteros::error::CreateError;
use pteros::event_handler::{EndpointEvent, PolicyId};
use pteros::graph::{EndpointInfo, EndpointKind, NodeInfo};
use pteros::guard_condition::GuardCondition;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::names::DdsTopic;
use pteros::parameter::{QosOverridingOptions, QosPolicyKind};
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
use pteros::service::{PendingRequest, ResponseFuture};
use pteros::wait_set::WaitSet;
use pteros::{PublisherOptions, SubscriptionOptions};
use pteros_test_support::behaviour::{LeftOut, NodeDriver, RowFilter, RowQos, play_nodes};

/// No other module has it.
const DOMAIN: u32 = 88;

const LEFT_OUT: [LeftOut; 0] = [];

enum Handle {
    Publisher(Publisher<Text>),
    Subscription(Subscription<Text>),
    Server(Service<AddTwoInts>),
    Client(Client<AddTwoInts>),
    Guard(GuardCondition),
    Timer(Timer),
    /// It was not created, with the kind of the error.
    Failed(&'static str),
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
    requests: Vec<PendingRequest<AddTwoIntsRequest, AddTwoIntsResponse>>,
    responses: Vec<ResponseFuture<AddTwoIntsResponse>>,
}

struct Rows {
    /// QoS overrides of the next node.
    overrides: Vec<String>,
    entities: Vec<Entity>,
    nodes: Vec<Node>,
    executors: Vec<SingleThreadedExecutor>,
    contexts: Vec<Context>,
}

impl Rows {
    fn new() -> Self {
        let mut rows = Self {
            overrides: Vec::new(),
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
        let (node, row) = (self.node(), RowQos::parse(words));
        let topic = name.qos(profile(&row));
        let created = match kind {
            "pub" => {
                let options = PublisherOptions::new(topic).qos_overrides(overrides(&row));
                node.create_publisher(options).map(Handle::Publisher)
            }
            "sub" => {
                let mut options = SubscriptionOptions::new(topic).qos_overrides(overrides(&row));
                if let Some(filter) = row.filter {
                    options = options.content_filter(filter.expression, filter.parameters);
                }
                let created = node.create_polled_subscription(options);
                created.map(Handle::Subscription)
            }
            "server" => Service::polled(node, name).map(Handle::Server),
            "client" => node.create_client(name).map(Handle::Client),
            _ => panic!("{kind}"),
        };
        created.unwrap_or_else(|error| match error {
            CreateError::QosOverrides { reason, .. } if reason.contains("Wrong parameter type") => {
                Handle::Failed("wrong type")
            }
            CreateError::QosOverrides { .. } | CreateError::Endpoint { .. } => {
                Handle::Failed("refused")
            }
            other => panic!("{other}"),
        })
    }

    fn entity(&mut self, number: &str) -> &mut Entity {
        let at = number.parse::<usize>().unwrap() - 1;
        &mut self.entities[at]
    }

    fn set_filter(&mut self, number: &str, words: &[&str]) -> &'static str {
        let Handle::Subscription(subscription) = &self.entity(number).handle else {
            panic!("no subscription");
        };
        let RowFilter {
            expression,
            parameters,
        } = RowFilter::parse(words);
        let set = subscription.set_content_filter(expression, parameters);
        if set.is_ok() { "ok" } else { "refused" }
    }

    /// The entities that a wait finds ready. It resets guard conditions, as that of rmw.
    fn wait(&mut self, timeout: &str, numbers: &[&str]) -> String {
        let mut set = WaitSet::new(self.contexts.last().unwrap());
        let keys: Vec<_> = numbers
            .iter()
            .map(|number| match &self.entity(number).handle {
                Handle::Subscription(subscription) => set.add(subscription),
                Handle::Server(server) => set.add(server),
                Handle::Client(client) => set.add(client),
                Handle::Guard(guard) => set.add(guard),
                Handle::Timer(timer) => set.add(timer),
                _ => panic!("{number} cannot be waited for"),
            })
            .collect::<Result<_, _>>()
            .unwrap();
        set.wait(Duration::from_secs_f64(timeout.parse().unwrap()));
        let found = numbers.iter().zip(keys);
        let ready: Vec<_> = found
            .filter(|(_, key)| set.is_ready(*key))
            .map(|(it, _)| *it)
            .collect();
        for number in &ready {
            if let Handle::Guard(guard) = &self.entity(number).handle {
                guard.take();
            }
        }
        ready.join(" ")
    }

    fn take_next(&mut self, number: &str) {
        let entity = self.entity(number);
        match &entity.handle {
            Handle::Subscription(subscription) => {
                let message = subscription.take().expect("a message");
                entity.taken.push(message.data.clone());
            }
            Handle::Server(server) => {
                let request = server.take_request().expect("a request");
                entity.requests.push(request);
            }
            Handle::Client(_) => {
                let response = entity.responses[0].take();
                response.expect("a response").unwrap();
                entity.responses.remove(0);
            }
            _ => panic!("{number} has nothing to take"),
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

fn overrides(row: &RowQos) -> QosOverridingOptions {
    let policies = row
        .allow
        .iter()
        .map(|word| QosPolicyKind::from_word(word).unwrap());
    let options = QosOverridingOptions::new(policies).id(&*row.id);
    let refuse = row.refuse;
    options.validation_callback(move |_| {
        if refuse {
            Err("refused".into())
        } else {
            Ok(())
        }
    })
}

fn row_qos(qos: &QosProfile) -> RowQos {
    RowQos {
        keep_all: qos.history == HistoryPolicy::KeepAll,
        depth: match qos.history {
            HistoryPolicy::KeepLast(depth) => u32::try_from(depth).ok(),
            _ => None,
        },
        lifespan: qos.lifespan.map(|span| span.as_secs()),
        avoid_ros_namespace_conventions: qos.avoid_ros_namespace_conventions,
        best_effort: qos.reliability == ReliabilityPolicy::BestEffort,
        transient_local: qos.durability == DurabilityPolicy::TransientLocal,
        manual: qos.liveliness == LivelinessPolicy::ManualByTopic,
        deadline: qos.deadline.map(|span| span.as_secs()),
        lease: qos.liveliness_lease.map(|span| span.as_secs()),
        ..RowQos::default()
    }
}

impl NodeDriver for Rows {
    fn play(&mut self, step: &[&str]) {
        let handle = match step {
            ["context", name] => return self.add_context(name),
            ["override", text] => return self.overrides.push(format!("qos_overrides.{text}")),
            ["node", namespace, name] => {
                let overrides = std::mem::take(&mut self.overrides);
                let words = overrides.into_iter().flat_map(|text| ["-p".into(), text]);
                let (arguments, _) =
                    Arguments::parse(once("--ros-args".into()).chain(words)).unwrap();
                let options = NodeOptions::new(*name).namespace(*namespace);
                return self.add_node(options.arguments(arguments));
            }
            ["drop", number] => {
                self.entity(number).handle = Handle::Dropped;
                return;
            }
            ["send", number, text] => {
                let Handle::Publisher(publisher) = &self.entity(number).handle else {
                    panic!("no publisher");
                };
                let data = (*text).to_owned();
                return publisher.publish(&Text { data }).unwrap();
            }
            ["filter", number, words @ ..] => {
                self.set_filter(number, words);
                return;
            }
            ["trigger", number] => match &self.entity(number).handle {
                Handle::Guard(guard) => return guard.trigger(),
                _ => panic!("no guard condition"),
            },
            ["wait", timeout, numbers @ ..] => {
                self.wait(timeout, numbers);
                return;
            }
            ["get", number] => return self.take_next(number),
            ["request", number] => {
                let entity = self.entity(number);
                let Handle::Client(client) = &entity.handle else {
                    panic!("no client");
                };
                let response = client.call_async(&AddTwoIntsRequest::default()).unwrap();
                return entity.responses.push(response);
            }
            ["respond", number] => {
                let request = self.entity(number).requests.remove(0);
                return request.respond(AddTwoIntsResponse::default()).unwrap();
            }
            ["guard"] => Handle::Guard(self.node().create_guard_condition(None, || {})),
            ["timer", seconds] => {
                let period = Duration::from_secs_f64(seconds.parse().unwrap());
                Handle::Timer(self.node().create_timer(period, || {}).unwrap())
            }
            [kind, name, words @ ..] => self.create(kind, name, words),
            _ => panic!("{step:?}"),
        };
        self.entities.push(Entity {
            handle,
            statuses: Statuses::default(),
            taken: Vec::new(),
            requests: Vec::new(),
            responses: Vec::new(),
        });
    }

    fn answer(&mut self, question: &[&str]) -> String {
        match question {
            ["wait", timeout, numbers @ ..] => return self.wait(timeout, numbers),
            ["filter", number, words @ ..] => return self.set_filter(number, words).to_owned(),
            _ => {}
        }
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
            ["profile", number] => match &entity(number).handle {
                Handle::Publisher(publisher) => row_qos(&publisher.qos()).changes(),
                Handle::Subscription(subscription) => row_qos(&subscription.qos()).changes(),
                Handle::Failed(error) => (*error).to_owned(),
                _ => panic!("neither publisher nor subscription"),
            },
            ["parameters"] => {
                let names = self.node().parameter_names("qos_overrides");
                let value = |name: &String| {
                    let value = self.node().parameter(name).unwrap().to_string();
                    format!(
                        "{}={}",
                        name.trim_start_matches("qos_overrides."),
                        value.replace('"', "")
                    )
                };
                let mut shown: Vec<_> = names.iter().map(value).collect();
                shown.sort();
                shown.join(" ")
            }
            ["filtered", number] => match &entity(number).handle {
                Handle::Subscription(subscription) if subscription.is_cft_enabled() => {
                    "yes".to_owned()
                }
                Handle::Subscription(_) => "no".to_owned(),
                Handle::Failed(error) => (*error).to_owned(),
                _ => panic!("no subscription"),
            },
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
    for table in ["graph", "qos_overrides", "content_filters", "wait_sets"] {
        assert!(play_nodes(table, &LEFT_OUT, Rows::new) > 20, "{table}");
    }
}
