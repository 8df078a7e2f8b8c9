//! A topology file, parsed and validated.
//!
//! The format is that of `ros2-performance` (performance_test_factory,
//! create_new_topology.md): a list `nodes`, each with `node_name` and lists of
//! publishers, subscribers, clients and servers. Fields that the framework would
//! ignore cause a warning.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pteros::QosProfile;
use pteros::msg::library::InterfaceLibrary;
use pteros::names::{NameKind, absolute_namespace, expand, validate_namespace, validate_node};
use serde_json::Value;

use super::fields::Fields;
use super::problem::TopologyProblem;
use super::{qos, types};

/// Maximum copies of one node (`number`).
const COPIES_MAX: u64 = 1_000;
/// Maximum nodes of one file with copies.
const NODES_MAX: usize = 5_000;
/// Maximum bytes of a message's vector.
const BYTES_MAX: u64 = 1 << 30;
/// Minimum and maximum period in milliseconds.
const PERIOD_MS: (f64, f64) = (0.001, 1e9);
/// Maximum work of a callback.
const WORK_US_MAX: u64 = 10_000_000;
/// Maximum size of a file. The largest published one has 20 kB.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A topology file.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Its path.
    pub file: PathBuf,
    /// Its nodes with copies.
    pub nodes: Vec<NodeSpec>,
    /// Warnings about fields without effect.
    pub warnings: Vec<TopologyProblem>,
}

#[derive(Clone, Debug)]
pub struct NodeSpec {
    pub name: String,
    /// Its namespace, absolute.
    pub namespace: String,
    /// Nodes with the same number share an executor with a thread.
    pub executor: i64,
    /// Its publishers, each with a timer.
    pub publishers: Vec<PublisherSpec>,
    pub subscriptions: Vec<SubscriptionSpec>,
    /// Its clients, each with a timer.
    pub clients: Vec<ClientSpec>,
    pub servers: Vec<ServerSpec>,
    /// Whether it is a lifecycle node, active before discovery. An extension of the
    /// format.
    pub is_managed: bool,
    /// Its action servers of `example_interfaces/action/Fibonacci`, without
    /// clients. An extension of the format.
    pub actions: Vec<String>,
}

/// How a publisher passes its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassBy {
    /// By move: no copy within the process.
    Owned,
    /// By reference: a copy for each local subscription.
    Shared,
}

#[derive(Clone, Debug)]
pub struct PublisherSpec {
    /// The topic as in the file.
    pub topic: String,
    /// The topic's full name.
    pub full_topic: String,
    /// The type's full name.
    pub ty: String,
    /// Bytes of `data`, if that is a vector.
    pub bytes: usize,
    /// Publish period.
    pub period: Duration,
    /// How messages are passed.
    pub pass_by: PassBy,
    /// Its QoS.
    pub qos: QosProfile,
}

#[derive(Clone, Debug)]
pub struct SubscriptionSpec {
    /// The topic as in the file.
    pub topic: String,
    /// The topic's full name.
    pub full_topic: String,
    /// The type's full name.
    pub ty: String,
    /// Work of its callback per message.
    pub work: Duration,
    /// Its QoS.
    pub qos: QosProfile,
}

#[derive(Clone, Debug)]
pub struct ClientSpec {
    /// The service as in the file.
    pub service: String,
    /// The service's full name.
    pub full_service: String,
    /// The type's full name.
    pub ty: String,
    /// Request period.
    pub period: Duration,
    /// Its QoS.
    pub qos: QosProfile,
}

#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// The service as in the file.
    pub service: String,
    /// The service's full name.
    pub full_service: String,
    /// The type's full name.
    pub ty: String,
    /// Its QoS.
    pub qos: QosProfile,
}

impl Topology {
    /// Reads a file, with types from `library`.
    ///
    /// # Errors
    /// The first problem: file, place, value, and what is expected.
    pub fn read(file: &Path, library: &InterfaceLibrary) -> Result<Self, TopologyProblem> {
        let problem = |message: String| TopologyProblem {
            file: file.into(),
            place: String::new(),
            value: String::new(),
            message,
        };
        let size = fs::metadata(file).map_err(|e| problem(format!("cannot be read: {e}")))?;
        if size.len() > FILE_BYTES_MAX {
            return Err(problem(format!(
                "has {} bytes; a topology has at most {FILE_BYTES_MAX}",
                size.len()
            )));
        }
        let text = fs::read_to_string(file).map_err(|e| problem(format!("cannot be read: {e}")))?;
        Self::parse(file, &text, library)
    }

    /// Parses the text of `file`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(
        file: &Path,
        text: &str,
        library: &InterfaceLibrary,
    ) -> Result<Self, TopologyProblem> {
        let whole = |message: String| TopologyProblem {
            file: file.into(),
            place: String::new(),
            value: String::new(),
            message,
        };
        let value: Value =
            serde_json::from_str(text).map_err(|e| whole(format!("is not JSON: {e}")))?;
        let nodes = value
            .get("nodes")
            .and_then(Value::as_array)
            .ok_or_else(|| {
                whole(
                    "has no list \"nodes\"; a topology is {\"nodes\": [{\"node_name\": …}, …]}"
                        .into(),
                )
            })?;
        let mut topology = Self {
            file: file.into(),
            nodes: Vec::new(),
            warnings: Vec::new(),
        };
        for (index, node) in nodes.iter().enumerate() {
            topology.read_node(index, node, library)?;
        }
        if topology.nodes.is_empty() {
            return Err(whole("has no node; \"nodes\" needs at least one".into()));
        }
        Ok(topology)
    }

    fn read_node(
        &mut self,
        index: usize,
        value: &Value,
        library: &InterfaceLibrary,
    ) -> Result<(), TopologyProblem> {
        let name = value.get("node_name").and_then(Value::as_str);
        let place = match name {
            Some(name) => format!("node \"{name}\""),
            None => format!("node {}", index + 1),
        };
        let mut fields = Fields::new(&self.file, &place, value)?;
        let name = fields
            .needed("node_name", "a name such as \"camera\"")?
            .to_owned();
        let namespace = fields
            .text("node_namespace")?
            .unwrap_or_default()
            .to_owned();
        let executor = fields.signed("executor_id")?.unwrap_or(0);
        let number = fields.integer("number", 1, COPIES_MAX)?;
        let is_managed = fields.flag("lifecycle")?;
        let actions = actions(&mut fields)?;
        let mut suffixes = vec![String::new()];
        if let Some(number) = number {
            suffixes = (1..=number).map(|copy| format!("_{copy}")).collect();
        }
        if self.nodes.len() + suffixes.len() > NODES_MAX {
            return Err(fields.problem(
                "number",
                format!("makes more than {NODES_MAX} nodes in this file; ask for fewer"),
            ));
        }
        let lists =
            ["publishers", "subscribers", "clients", "servers"].map(|list| fields.list(list));
        let [publishers, subscribers, clients, servers] = lists;
        let lists = [publishers?, subscribers?, clients?, servers?];
        self.warnings.append(&mut fields.unknown(&NODE_FIELDS));
        for suffix in suffixes {
            let mut node = NodeSpec {
                name: format!("{name}{suffix}"),
                // The framework appends the copy's number to the namespace, too.
                namespace: if namespace.is_empty() {
                    "/".into()
                } else {
                    absolute_namespace(&format!("{namespace}{suffix}"))
                },
                executor,
                publishers: Vec::new(),
                subscriptions: Vec::new(),
                clients: Vec::new(),
                servers: Vec::new(),
                is_managed,
                actions: actions.clone(),
            };
            validate_node(&node.name).map_err(|e| fields.problem("node_name", e.to_string()))?;
            validate_namespace(&node.namespace)
                .map_err(|e| fields.problem("node_namespace", e.to_string()))?;
            let place = format!("node \"{}\"", node.name);
            let mut warnings = Entities {
                file: &self.file,
                place: &place,
                library,
                warnings: Vec::new(),
            }
            .read(&mut node, &lists)?;
            self.warnings.append(&mut warnings);
            self.nodes.push(node);
        }
        Ok(())
    }
}

/// Names of a node's action servers.
fn actions(fields: &mut Fields<'_>) -> Result<Vec<String>, TopologyProblem> {
    let list = fields.list("actions")?;
    let wrong = |why: &str| fields.problem("actions", why.into());
    if list.len() > ACTIONS_MAX {
        return Err(wrong(&format!("at most {ACTIONS_MAX} are expected")));
    }
    let name = |value: &Value| {
        let name = value
            .as_str()
            .ok_or_else(|| wrong("names in quotes are expected"))?;
        expand(NameKind::Topic, name, "node", "/").map_err(|e| wrong(&e.to_string()))?;
        Ok(name.to_owned())
    };
    list.iter().map(name).collect()
}

/// Maximum action servers of a node.
const ACTIONS_MAX: usize = 100;

const NODE_FIELDS: [&str; 10] = [
    "lifecycle",
    "actions",
    "node_name",
    "node_namespace",
    "executor_id",
    "number",
    "publishers",
    "subscribers",
    "clients",
    "servers",
];

const ENTITY_FIELDS: [&str; 18] = [
    "topic_name",
    "service_name",
    "msg_type",
    "srv_type",
    "msg_size",
    "period_ms",
    "freq_hz",
    "msg_pass_by",
    "work_us",
    "qos_history",
    "qos_depth",
    "qos_reliability",
    "qos_durability",
    "qos_deadline",
    "qos_lifespan",
    "qos_liveliness",
    "qos_liveliness_lease_duration",
    "qos_avoid_ros_namespace_conventions",
];

/// Reads the entities of a node.
struct Entities<'a> {
    file: &'a Path,
    place: &'a str,
    library: &'a InterfaceLibrary,
    warnings: Vec<TopologyProblem>,
}

impl Entities<'_> {
    fn read(
        mut self,
        node: &mut NodeSpec,
        lists: &[&[Value]; 4],
    ) -> Result<Vec<TopologyProblem>, TopologyProblem> {
        let [publishers, subscribers, clients, servers] = lists;
        for (index, value) in publishers.iter().enumerate() {
            let mut fields = self.fields("publisher", index, value)?;
            let (topic, full_topic) = named(&mut fields, node, "topic_name", NameKind::Topic)?;
            let ty = self.message_type(&mut fields)?;
            let period = period(&mut fields)?;
            let bytes = fields.integer("msg_size", 0, BYTES_MAX)?;
            if bytes.is_some() && !types::has_vector(self.library, &ty) {
                let text = format!("{ty} has no vector \"data\"; its size stays as it is");
                self.warnings.push(fields.problem("msg_size", text));
            }
            let pass_by = self.pass_by(&mut fields, PassBy::Owned)?;
            let qos = qos::read(&mut fields, QosProfile::default())?;
            self.warnings.append(&mut fields.unknown(&ENTITY_FIELDS));
            node.publishers.push(PublisherSpec {
                topic,
                full_topic,
                ty,
                bytes: usize::try_from(bytes.unwrap_or(0)).unwrap_or(usize::MAX),
                period,
                pass_by,
                qos,
            });
        }
        for (index, value) in subscribers.iter().enumerate() {
            let mut fields = self.fields("subscriber", index, value)?;
            let (topic, full_topic) = named(&mut fields, node, "topic_name", NameKind::Topic)?;
            let ty = self.message_type(&mut fields)?;
            // A subscription gets the publisher's value or its own copy.
            self.pass_by(&mut fields, PassBy::Shared)?;
            let work = fields.integer("work_us", 0, WORK_US_MAX)?;
            let qos = qos::read(&mut fields, QosProfile::default())?;
            self.warnings.append(&mut fields.unknown(&ENTITY_FIELDS));
            node.subscriptions.push(SubscriptionSpec {
                topic,
                full_topic,
                ty,
                work: Duration::from_micros(work.unwrap_or(0)),
                qos,
            });
        }
        for (index, value) in clients.iter().enumerate() {
            let mut fields = self.fields("client", index, value)?;
            let (service, full_service) =
                named(&mut fields, node, "service_name", NameKind::Service)?;
            let ty = self.service_type(&mut fields)?;
            let period = period(&mut fields)?;
            let qos = qos::read(&mut fields, QosProfile::services())?;
            self.warnings.append(&mut fields.unknown(&ENTITY_FIELDS));
            node.clients.push(ClientSpec {
                service,
                full_service,
                ty,
                period,
                qos,
            });
        }
        for (index, value) in servers.iter().enumerate() {
            let mut fields = self.fields("server", index, value)?;
            let (service, full_service) =
                named(&mut fields, node, "service_name", NameKind::Service)?;
            let ty = self.service_type(&mut fields)?;
            let qos = qos::read(&mut fields, QosProfile::services())?;
            self.warnings.append(&mut fields.unknown(&ENTITY_FIELDS));
            node.servers.push(ServerSpec {
                service,
                full_service,
                ty,
                qos,
            });
        }
        Ok(self.warnings)
    }

    fn fields<'v>(
        &self,
        kind: &str,
        index: usize,
        value: &'v Value,
    ) -> Result<Fields<'v>, TopologyProblem> {
        let place = format!("{}, {kind} {}", self.place, index + 1);
        Fields::new(self.file, &place, value)
    }

    fn message_type(&self, fields: &mut Fields<'_>) -> Result<String, TopologyProblem> {
        let name = fields.needed("msg_type", "a type such as \"stamped10b\"")?;
        types::message(self.library, name).map_err(|text| fields.problem("msg_type", text))
    }

    fn service_type(&self, fields: &mut Fields<'_>) -> Result<String, TopologyProblem> {
        let name = fields.needed("srv_type", "a type such as \"stamped10b\"")?;
        types::service(self.library, name).map_err(|text| fields.problem("srv_type", text))
    }

    fn pass_by(
        &mut self,
        fields: &mut Fields<'_>,
        default: PassBy,
    ) -> Result<PassBy, TopologyProblem> {
        let words = ["unique_ptr", "shared_ptr", "loaned_msg"];
        Ok(match fields.word("msg_pass_by", &words)? {
            Some("unique_ptr") => PassBy::Owned,
            Some("shared_ptr") => PassBy::Shared,
            Some(_) => {
                let text = "types known at run time have no loans; passed as unique_ptr, \
                            which copies nothing within a process";
                self.warnings
                    .push(fields.problem("msg_pass_by", text.into()));
                PassBy::Owned
            }
            None => default,
        })
    }
}

/// A topic or service as in the file, and its full name.
fn named(
    fields: &mut Fields<'_>,
    node: &NodeSpec,
    field: &str,
    kind: NameKind,
) -> Result<(String, String), TopologyProblem> {
    let name = fields
        .needed(field, "a name such as \"amazon\"")?
        .to_owned();
    let full = expand(kind, &name, &node.name, &node.namespace)
        .map_err(|e| fields.problem(field, e.to_string()))?;
    Ok((name, full))
}

/// `freq_hz` has precedence over `period_ms`, as in the framework.
fn period(fields: &mut Fields<'_>) -> Result<Duration, TopologyProblem> {
    let (least, most) = PERIOD_MS;
    let frequency = fields.number("freq_hz", 1e3 / most, 1e3 / least)?;
    let period = fields.number("period_ms", least, most)?;
    let ms = match (frequency, period) {
        (Some(hz), _) => 1e3 / hz,
        (None, Some(ms)) => ms,
        (None, None) => {
            return Err(fields.problem(
                "period_ms",
                "is missing; say period_ms (milliseconds) or freq_hz".into(),
            ));
        }
    };
    Ok(Duration::from_secs_f64(ms / 1e3))
}

#[cfg(test)]
mod tests {
    use super::super::pairs::{incompatible_pairs, matching_subscriptions};
    use super::*;

    fn parse(text: &str) -> Result<Topology, String> {
        let library = types::library();
        Topology::parse(Path::new("robot.json"), text, &library).map_err(|e| e.to_string())
    }

    fn wrong(text: &str) -> String {
        parse(text).expect_err("something is wrong")
    }

    /// A node with one entity.
    fn with(list: &str, entity: &str) -> String {
        format!(r#"{{"nodes": [{{"node_name": "arm", "{list}": [{entity}]}}]}}"#)
    }

    #[test]
    fn every_field_of_the_format_is_parsed() {
        let text = r#"{"nodes": [
            {"node_name": "front", "node_namespace": "robot", "executor_id": 3, "number": 2,
             "publishers": [
                {"topic_name": "scan", "msg_type": "stamped_vector", "msg_size": 4000,
                 "freq_hz": 20, "period_ms": 1, "msg_pass_by": "shared_ptr",
                 "qos_history": "keep_all", "qos_depth": 7, "qos_reliability": "best_effort",
                 "qos_durability": "transient_local", "qos_deadline": "default",
                 "qos_lifespan": "default", "qos_liveliness": "automatic",
                 "qos_liveliness_lease_duration": "default",
                 "qos_avoid_ros_namespace_conventions": "true"},
                {"topic_name": "/odom", "msg_type": "nav_msgs/msg/Odometry", "period_ms": 0.5}],
             "subscribers": [{"topic_name": "~/in", "msg_type": "stamped10b",
                              "msg_pass_by": "unique_ptr", "work_us": 500}],
             "clients": [{"service_name": "map", "srv_type": "stamped10b", "period_ms": 100}],
             "servers": [{"service_name": "/map", "srv_type": "std_srvs/srv/Trigger"}]}]}"#;
        let topology = parse(text).expect("right");
        assert_eq!(topology.warnings, []);
        let [first, second] = topology.nodes.as_slice() else {
            panic!("{} nodes", topology.nodes.len());
        };
        assert_eq!(
            (first.name.as_str(), first.namespace.as_str()),
            ("front_1", "/robot_1")
        );
        assert_eq!((second.name.as_str(), second.executor), ("front_2", 3));
        let [scan, odom] = first.publishers.as_slice() else {
            panic!("{:?}", first.publishers);
        };
        assert_eq!(scan.full_topic, "/robot_1/scan");
        assert_eq!((scan.bytes, scan.pass_by), (4000, PassBy::Shared));
        assert_eq!(scan.period, Duration::from_millis(50));
        assert_eq!(scan.qos.history, pteros::qos::HistoryPolicy::KeepAll);
        assert!(scan.qos.avoid_ros_namespace_conventions);
        assert_eq!(odom.period, Duration::from_micros(500));
        assert_eq!(odom.qos, QosProfile::default());
        assert_eq!(first.subscriptions[0].full_topic, "/robot_1/front_1/in");
        assert_eq!(first.subscriptions[0].work, Duration::from_micros(500));
        assert_eq!(first.clients[0].full_service, "/robot_1/map");
        assert_eq!(first.servers[0].ty, "std_srvs/srv/Trigger");
    }

    #[test]
    fn errors_name_file_position_value_and_allowed_values() {
        let publisher = |rest: &str| {
            let entity = format!(r#"{{"topic_name": "t", "msg_type": "stamped10b", {rest}}}"#);
            with("publishers", &entity)
        };
        for (text, warnings) in [
            ("{".into(), "robot.json: is not JSON"),
            ("{}".into(), "has no list \"nodes\""),
            (r#"{"nodes": []}"#.into(), "at least one"),
            (r#"{"nodes": [7]}"#.into(), "node 1: 7: an object"),
            (r#"{"nodes": [{}]}"#.into(), "node 1, node_name: is missing"),
            (
                r#"{"nodes": [{"node_name": "1a"}]}"#.into(),
                "node_name: \"1a\": ",
            ),
            (
                r#"{"nodes": [{"node_name": "a", "number": 0}]}"#.into(),
                "number: 0: a whole number from 1",
            ),
            (with("publishers", "[]"), "publisher 1: []: an object"),
            (
                publisher(r#""period_ms": 0"#),
                "publisher 1, period_ms: 0: a number from",
            ),
            (
                publisher(r#""period_ms": "10""#),
                "period_ms: \"10\": a number",
            ),
            (publisher(r#""freq_hz": -3"#), "freq_hz: -3: a number"),
            (
                publisher(r#""qos_depth": 2.5, "period_ms": 1"#),
                "qos_depth: 2.5: a whole number",
            ),
            (
                publisher(r#""qos_reliability": "relaible", "period_ms": 1"#),
                "one of system_default, reliable, best_effort is expected",
            ),
            (
                publisher(r#""msg_size": -1, "period_ms": 1"#),
                "msg_size: -1: a whole number",
            ),
            (
                publisher(r#""msg_pass_by": "copy", "period_ms": 1"#),
                "unique_ptr, shared_ptr, loaned_msg",
            ),
            (
                publisher(r#""qos_depth": 1"#),
                "say period_ms (milliseconds) or freq_hz",
            ),
            (
                with(
                    "subscribers",
                    r#"{"topic_name": "a b", "msg_type": "stamped10b"}"#,
                ),
                "subscriber 1, topic_name: \"a b\"",
            ),
            (
                with(
                    "subscribers",
                    r#"{"topic_name": "a", "msg_type": "stampd10b"}"#,
                ),
                "msg_type: \"stampd10b\": no such type; did you mean stamped10b",
            ),
            (
                with(
                    "servers",
                    r#"{"service_name": "a", "srv_type": "stamped4mb"}"#,
                ),
                "server 1, srv_type",
            ),
            (
                with("clients", r#"{"srv_type": "stamped10b"}"#),
                "client 1, service_name: is missing",
            ),
        ] {
            let message = wrong(&text);
            assert!(message.starts_with("robot.json: "), "{message}");
            assert!(message.contains(warnings), "{message}\n  lacks {warnings}");
        }
    }

    #[test]
    fn ignored_fields_and_incompatible_qos_cause_warnings() {
        let text = r#"{"nodes": [
            {"node_name": "a", "publishers": [
                {"topic_name": "t", "msg_type": "stamped10b", "period_ms": 1, "msg_size": 5,
                 "qos_reliability": "best_effort", "qos_relability": "reliable"}]},
            {"node_name": "b", "subscribers": [{"topic_name": "t", "msg_type": "stamped10b"}]},
            {"node_name": "b", "subscribers": [{"topic_name": "t", "msg_type": "stamped1kb"}]}]}"#;
        let topology = parse(text).expect("it runs");
        let mut warnings: Vec<String> = topology
            .warnings
            .iter()
            .map(TopologyProblem::to_string)
            .collect();
        assert_eq!(
            matching_subscriptions(
                &topology.nodes[0].publishers[0],
                std::slice::from_ref(&topology)
            ),
            0
        );
        warnings.extend(
            incompatible_pairs(&[topology])
                .iter()
                .map(TopologyProblem::to_string),
        );
        for part in [
            "has no vector \"data\"",
            "did you mean qos_reliability",
            "receives nothing of node \"a\" on /t: RELIABILITY",
            "another node has this name",
            "they do not match",
        ] {
            assert!(
                warnings.iter().any(|line| line.contains(part)),
                "{part}: {warnings:#?}"
            );
        }
    }
}
