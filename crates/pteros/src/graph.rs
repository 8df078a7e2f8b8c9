//! The graph as users see it: nodes, topics, endpoints, and why two endpoints
//! do or do not talk.

mod announced;
mod participants;

pub use announced::TypeNotTold;
pub use participants::ParticipantInfo;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pteros_msg::hash::TypeHash;
use pteros_msg::message::ros_type_name;
use pteros_rmw::graph::{GraphEndpoint, GraphNode, enclave_of, free_user_data, user_data_value};
use pteros_rmw::names::{DdsTopic, from_dds_topic};
use pteros_rmw::qos::report::mismatches;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::rtps::content_filter::ContentFilterProperty;
use pteros_rmw::rtps::discovery::data::EndpointData;
use pteros_rmw::rtps::id::{Guid, VendorId};

use crate::context::Context;
use crate::qos::QosProfile;

/// A view of the graph of a context's domain. Thread-safe. Answers are copies of
/// what is known at the moment and allocate; nothing is asked of peers. What a
/// new context knows grows for a few milliseconds: see
/// [`Graph::wait_for_change`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = Context::new()?.graph();
/// graph.wait_until(Duration::from_secs(1), || !graph.publishers("/scan").is_empty());
/// for topic in graph.topics() {
///     println!("{}: {}", topic.name, topic.types.join(", "));
/// }
/// for pair in graph.why("/scan") {
///     println!("{} and {}: {:?}", pair.publisher.gid, pair.subscription.gid, pair.verdicts);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    context: Context,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeInfo {
    /// `/` or `/some/namespace`.
    pub namespace: String,
    /// Its name without namespace.
    pub name: String,
    /// Its enclave, if its participant told.
    pub enclave: Option<String>,
    /// The participant it lives in.
    pub participant: Guid,
}

impl NodeInfo {
    /// `/namespace/name`.
    pub fn fully_qualified_name(&self) -> String {
        pteros_rmw::names::node_path(&self.namespace, &self.name)
    }
}

/// A topic or service of the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicInfo {
    /// Fully qualified name.
    pub name: String,
    /// Type names, as `std_msgs/msg/String`; more than one means that its
    /// endpoints disagree.
    pub types: Vec<String>,
}

/// Which side of a topic an endpoint is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// It publishes.
    Publisher,
    /// It subscribes.
    Subscription,
}

/// An endpoint of the graph.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Its node's name; `None` while (or because) its participant has not told.
    pub node_name: Option<String>,
    /// Its node's namespace.
    pub node_namespace: Option<String>,
    /// `std_msgs/msg/String`, or the DDS name of a type that is not ROS's.
    pub topic_type: String,
    /// The type hash, if announced.
    pub type_hash: Option<TypeHash>,
    /// Publisher or subscription.
    pub kind: EndpointKind,
    /// Its gid.
    pub gid: Guid,
    /// Its QoS. History and lifespan are not announced by every stack and
    /// then read as defaults.
    pub qos: QosProfile,
    /// Whose stack it is.
    pub vendor: VendorId,
    /// Its participant's enclave, if announced.
    pub enclave: Option<String>,
    /// What a subscription wants of the topic, as it announces it: expression
    /// and parameters, [`ContentFilterProperty::class`] being its language.
    pub content_filter: Option<ContentFilterProperty>,
    /// Whether it lives in this context.
    pub local: bool,
    data: Arc<EndpointData>,
}

/// Whether a publisher and a subscription talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They do.
    Matched {
        /// By which path.
        path: String,
    },
    /// They do not, and will not until something is changed.
    Blocked {
        /// Which policy, or "type".
        policy: String,
        /// What the publisher offers.
        offered: String,
        /// What the subscription asks for.
        requested: String,
        /// What to change.
        advice: String,
    },
    /// They may not: security does not allow it.
    Denied {
        /// The rule that says so, with its file and line.
        reason: String,
    },
    /// They may yet.
    Pending {
        /// What is missing.
        reason: String,
    },
}

/// One publisher and one subscription of a topic, and what is between them.
#[derive(Clone, Debug)]
pub struct PairReport {
    /// The publisher.
    pub publisher: EndpointInfo,
    /// The subscription.
    pub subscription: EndpointInfo,
    /// Every reason found; a single [`Verdict::Matched`] when they talk.
    pub verdicts: Vec<Verdict>,
}

impl Graph {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    fn raw(&self) -> &pteros_rmw::graph::Graph {
        self.context.core().graph()
    }

    /// All nodes, sorted by full name.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes: Vec<NodeInfo> = self.raw().nodes().into_iter().map(node_info).collect();
        nodes.sort_by_key(NodeInfo::fully_qualified_name);
        nodes
    }

    /// All ROS topics with their types, sorted by name. Services are left out.
    pub fn topics(&self) -> Vec<TopicInfo> {
        self.named(|name| match name {
            DdsTopic::Topic(name) => Some(name),
            _ => None,
        })
    }

    /// All topics as DDS names them, sorted: those of ROS with their prefix
    /// (`rt/chatter`), those of services, and those outside ROS's conventions
    /// (`Square`).
    pub fn dds_topics(&self) -> Vec<TopicInfo> {
        self.grouped(|dds| Some(dds.to_owned()))
    }

    /// All services with their types, sorted by name.
    pub fn services(&self) -> Vec<TopicInfo> {
        let mut services = self.named(|name| match name {
            DdsTopic::ServiceRequest(name) | DdsTopic::ServiceReply(name) => Some(name),
            _ => None,
        });
        for service in &mut services {
            let types: BTreeSet<String> = service.types.drain(..).map(service_type).collect();
            service.types = types.into_iter().collect();
        }
        services
    }

    fn named(&self, select: impl Fn(DdsTopic) -> Option<String>) -> Vec<TopicInfo> {
        self.grouped(|dds| select(from_dds_topic(dds)))
    }

    fn grouped(&self, select: impl Fn(&str) -> Option<String>) -> Vec<TopicInfo> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.raw().each_topic(|dds, ty| {
            if let Some(name) = select(dds) {
                found.entry(name).or_default().insert(type_of(ty));
            }
        });
        found
            .into_iter()
            .map(|(name, types)| TopicInfo {
                name,
                types: types.into_iter().collect(),
            })
            .collect()
    }

    /// The publishers of a topic, given by its fully qualified name (`/scan`)
    /// or the name that DDS has for it (`rt/scan`, `Square`); none where nobody
    /// publishes or the name is neither.
    pub fn publishers(&self, topic: &str) -> Vec<EndpointInfo> {
        self.of_topic(topic, EndpointKind::Publisher)
    }

    /// The subscriptions of a topic, given as for [`Graph::publishers`].
    pub fn subscriptions(&self, topic: &str) -> Vec<EndpointInfo> {
        self.of_topic(topic, EndpointKind::Subscription)
    }

    fn of_topic(&self, topic: &str, kind: EndpointKind) -> Vec<EndpointInfo> {
        let nodes = self.raw().nodes();
        let mut found: Vec<EndpointInfo> = self
            .raw()
            .endpoints_if(|guid, name| {
                kind_of(guid) == kind && (name == topic || ros_topic(name) == topic)
            })
            .into_iter()
            .map(|e| self.endpoint_info(e, &nodes))
            .collect();
        found.sort_by_key(|e| e.gid);
        found
    }

    /// All endpoints of a node: topics' and services', with their ROS names.
    pub fn endpoints_of(&self, node: &NodeInfo) -> Vec<(DdsTopic, EndpointInfo)> {
        let nodes = self.raw().nodes();
        let Some(found) = nodes.iter().find(|n| {
            n.name == node.name
                && n.namespace == node.namespace
                && n.participant == node.participant.prefix
        }) else {
            return Vec::new();
        };
        let own = |guid: &Guid| found.readers.contains(guid) || found.writers.contains(guid);
        let mut list: Vec<_> = self
            .raw()
            .endpoints_if(|guid, _| own(&guid))
            .into_iter()
            .map(|e| {
                let topic = from_dds_topic(&e.data.topic);
                (topic, self.endpoint_info(e, &nodes))
            })
            .collect();
        list.sort_by(|a, b| a.1.data.topic.cmp(&b.1.data.topic));
        list
    }

    fn endpoint_info(&self, endpoint: GraphEndpoint, nodes: &[GraphNode]) -> EndpointInfo {
        let data = endpoint.data;
        let owner = nodes.iter().find(|n| {
            let list = match data.guid.entity.is_writer() {
                true => &n.writers,
                false => &n.readers,
            };
            n.participant == data.guid.prefix && list.contains(&data.guid)
        });
        let (vendor, enclave) = match endpoint.local {
            true => {
                let own = &self.context.core().options().enclave;
                (VendorId::PTEROS, Some(own.clone()))
            }
            false => self
                .raw()
                .participant(data.guid.prefix)
                .map(|p| (p.vendor, enclave_of(&p)))
                .unwrap_or_default(),
        };
        let hash = user_data_value(&data.qos.user_data, "typehash");
        EndpointInfo {
            node_name: owner.map(|n| n.name.clone()),
            node_namespace: owner.map(|n| n.namespace.clone()),
            topic_type: type_of(&data.type_name),
            type_hash: hash.and_then(|text| text.parse().ok()),
            kind: kind_of(data.guid),
            gid: data.guid,
            qos: QosProfile::from_endpoint(&data.qos)
                .user_data(free_user_data(&data.qos.user_data)),
            vendor,
            enclave,
            content_filter: data.content_filter.clone(),
            local: endpoint.local,
            data,
        }
    }

    /// A number that grows with every change of the graph.
    pub fn revision(&self) -> u64 {
        self.raw().revision()
    }

    /// Waits until the revision differs from `since`; returns the one then, or
    /// `since` when nothing changed. Blocks, at most `timeout` or until the
    /// context shuts down; drives the network itself and runs no callbacks.
    pub fn wait_for_change(&self, since: u64, timeout: Duration) -> u64 {
        self.wait_until(timeout, || self.revision() != since);
        self.revision()
    }

    /// Waits until `done` says so; returns its last word. It is asked after every
    /// change and should be quick. Blocks, at most `timeout` or until the context
    /// shuts down; drives the network itself and runs no callbacks.
    pub fn wait_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        let core = self.context.core();
        let queue: Arc<ReadyQueue> = core.ready_queue();
        let until = core.env.now().after(timeout.into());
        core.drive_until(&queue, until, done)
    }

    /// For each publisher and subscription of a topic: do they talk, by which
    /// path, and if not, why.
    pub fn why(&self, topic: &str) -> Vec<PairReport> {
        let publishers = self.publishers(topic);
        let subscriptions = self.subscriptions(topic);
        let pairs = publishers
            .iter()
            .flat_map(|p| subscriptions.iter().map(move |s| (p, s)));
        pairs
            .map(|(publisher, subscription)| PairReport {
                verdicts: self.verdicts(publisher, subscription),
                publisher: publisher.clone(),
                subscription: subscription.clone(),
            })
            .collect()
    }

    fn verdicts(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> Vec<Verdict> {
        if publisher.topic_type != subscription.topic_type {
            return vec![Verdict::Blocked {
                policy: "type".into(),
                offered: publisher.topic_type.clone(),
                requested: subscription.topic_type.clone(),
                advice: "give both the same type, or one of the topics another name".into(),
            }];
        }
        let blocked: Vec<Verdict> = mismatches(&publisher.data.qos, &subscription.data.qos)
            .into_iter()
            .map(|m| Verdict::Blocked {
                policy: m.policy.name().into(),
                offered: m.offered,
                requested: m.requested,
                advice: m.advice,
            })
            .collect();
        if !blocked.is_empty() {
            return blocked;
        }
        let mut verdicts = vec![self.match_verdict(publisher, subscription)];
        if let (Some(ours), Some(theirs)) = (publisher.type_hash, subscription.type_hash)
            && ours != theirs
        {
            verdicts.push(Verdict::Pending {
                    reason: format!(
                        "the type hashes differ ({ours} and {theirs}): the two were built from different definitions of {}",
                        publisher.topic_type
                    ),
                });
        }
        verdicts
    }

    fn match_verdict(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> Verdict {
        for endpoint in [publisher, subscription] {
            let prefix = endpoint.gid.prefix;
            if !endpoint.local && self.raw().participant(prefix).is_none() {
                return Verdict::Pending {
                    reason: format!("participant {prefix} has not announced itself yet"),
                };
            }
        }
        let core = self.context.core();
        if let Some(reason) = core.why_denied(&publisher.data, &subscription.data) {
            return Verdict::Denied { reason };
        }
        let same = publisher.gid.prefix == subscription.gid.prefix;
        let path = match same {
            true if publisher.vendor == VendorId::PTEROS => "intra-process".to_owned(),
            true => "within one participant".to_owned(),
            false => self.path_between(publisher, subscription),
        };
        Verdict::Matched { path }
    }

    /// The path between two processes. What this context is part of is known,
    /// the rest follows from what both announce.
    fn path_between(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> String {
        let core = self.context.core();
        let (ours, theirs) = (publisher.gid.prefix, subscription.gid.prefix);
        let reason = match core.prefix() {
            own if own == ours => core.path_to(theirs).reason,
            own if own == theirs => core.path_to(ours).reason,
            _ => core.apart(ours, theirs),
        };
        match reason {
            None => "shared memory".into(),
            Some(reason) => {
                let path = self.udp_path(publisher, subscription);
                format!("{path} (no shared memory: {reason})")
            }
        }
    }

    /// Where the publisher's datagrams for this subscription go, as announced.
    fn udp_path(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> String {
        let announced = |e: &EndpointInfo| {
            if !e.data.unicast.is_empty() {
                return e.data.unicast.first().copied();
            }
            if e.local {
                return None;
            }
            let participant = self.raw().participant(e.gid.prefix)?;
            participant.default_unicast.first().copied()
        };
        let shown = |e: &EndpointInfo| {
            announced(e).map_or_else(|| "this process".to_owned(), |l| l.to_string())
        };
        format!("UDP, {} to {}", shown(publisher), shown(subscription))
    }
}

fn node_info(node: GraphNode) -> NodeInfo {
    NodeInfo {
        participant: node
            .participant
            .with(pteros_rmw::rtps::id::EntityId::PARTICIPANT),
        namespace: node.namespace,
        name: node.name,
        enclave: node.enclave,
    }
}

fn kind_of(guid: Guid) -> EndpointKind {
    match guid.entity.is_writer() {
        true => EndpointKind::Publisher,
        false => EndpointKind::Subscription,
    }
}

/// The ROS name of a topic; names outside ROS's conventions as they are.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) => name,
        _ => dds.to_owned(),
    }
}

fn type_of(dds: &str) -> String {
    ros_type_name(dds).unwrap_or_else(|| dds.to_owned())
}

/// `pkg/srv/Name` of a request's or reply's type.
fn service_type(name: String) -> String {
    ["_Request", "_Response"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .map_or_else(|| name.clone(), str::to_owned)
}
