//! Graph cache API: nodes, topics, services and endpoints, and endpoint matching.
//!
//! [`Graph`] reads what SPDP, SEDP and `ros_discovery_info` have announced so far,
//! and explains per pair whether it matches (QoS compatibility of request/offered,
//! type compatibility, security). It sends nothing and never asks peers.

mod announced_type;
mod names_and_types;
mod participants;

pub use announced_type::AnnouncedTypeError;
pub use names_and_types::{
    EndpointRole, NamesAndTypes, NamesOf, NodeQueryError, TopicEndpointInfo,
    action_names_and_types, endpoint_infos, names_and_types, names_and_types_of_node,
    service_endpoint_infos, with_writers,
};
pub use participants::ParticipantInfo;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_msg::hash::TypeHash;
use pteros_msg::message::ros_type_name;
use pteros_runtime::Core;
use pteros_runtime::graph::{GraphEndpoint, GraphNode, enclave_of};
use pteros_runtime::names::{DdsTopic, from_dds_topic};
use pteros_runtime::qos::report::mismatches;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::content_filter::ContentFilterProperty;
use pteros_runtime::rtps::discovery::data::EndpointData;
use pteros_runtime::rtps::matching::{announce_other_versions, is_service_topic};
use pteros_runtime::service::service_mismatch;
use pteros_runtime::user_data::{free_user_data, service_type_hash, type_hash};

use names_and_types::owner_of;

pub use pteros_runtime::rtps::discovery::data::ProductVersion;
pub use pteros_runtime::rtps::id::{Guid, VendorId};

use pteros_runtime::qos::QosProfile;

/// The most pairs in the reports of one topic. Thousands of endpoints make millions of
/// pairs.
pub const MATCH_REPORTS_MAX: usize = 16_384;

/// The ROS graph of a context's domain. Thread-safe.
///
/// Results are copies of the graph cache at the moment; they allocate. No peer is
/// asked. The graph of a new context fills within a few milliseconds: see
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
/// for pair in graph.match_reports("/scan") {
///     println!("{} and {}: {:?}", pair.publisher.gid, pair.subscription.gid, pair.outcomes);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Graph {
    core: Arc<Core>,
    /// The context, which leaves the graph when its last owner is dropped.
    _context: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("revision", &self.revision())
            .finish()
    }
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeInfo {
    /// `/` or `/some/namespace`.
    pub namespace: String,
    /// Its name without namespace.
    pub name: String,
    /// Its enclave, if its participant announces one.
    pub enclave: Option<String>,
    /// The GUID of its participant.
    pub participant: Guid,
}

impl NodeInfo {
    /// `/namespace/name`.
    pub fn fully_qualified_name(&self) -> String {
        pteros_runtime::names::node_path(&self.namespace, &self.name)
    }
}

/// A topic or service of the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicInfo {
    /// Fully qualified name.
    pub name: String,
    /// Type names, for example `std_msgs/msg/String`; more than one means that its
    /// endpoints disagree.
    pub types: Vec<String>,
}

/// Which side of a topic an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// A publisher (DataWriter).
    Publisher,
    /// A subscription (DataReader).
    Subscription,
}

/// A publisher or subscription of the graph.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Its node's name; `None` if its participant has not announced one.
    pub node_name: Option<String>,
    /// Its node's namespace.
    pub node_namespace: Option<String>,
    /// The type name, `std_msgs/msg/String`, or the DDS name of a type outside ROS.
    pub topic_type: String,
    /// The RIHS01 type hash, if announced.
    pub type_hash: Option<TypeHash>,
    /// Publisher or subscription.
    pub kind: EndpointKind,
    /// The GUID of its DDS endpoint.
    pub gid: Guid,
    /// Its QoS. Not every implementation announces history and lifespan, which then
    /// have default values.
    pub qos: QosProfile,
    /// The vendor id of its DDS implementation.
    pub vendor: VendorId,
    /// Its participant's enclave, if announced.
    pub enclave: Option<String>,
    /// A subscription's content filter as announced: expression and parameters.
    ///
    /// [`ContentFilterProperty::class`] names the filter language.
    pub content_filter: Option<ContentFilterProperty>,
    /// The gids of reliable subscriptions that have acknowledged nothing of this
    /// publisher for 2 s although messages are outstanding, at most 16. Publishers of
    /// Pteros announce them.
    pub stalled_subscriptions: Vec<Guid>,
    /// The gids of publishers whose messages this subscription has dropped, because they
    /// do not decode as its type, and how many of each; at most 16, some seconds old.
    /// Subscriptions of Pteros announce them.
    pub undecodable: Vec<(Guid, u32)>,
    /// Whether it belongs to this context.
    pub local: bool,
    data: Arc<EndpointData>,
}

/// Endpoint matching between a publisher and a subscription, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchOutcome {
    /// They are matched.
    Matched {
        /// How messages travel.
        path: String,
    },
    /// They are incompatible until something is changed.
    Incompatible {
        /// The incompatible policy, or "type".
        policy: String,
        /// The offered value.
        offered: String,
        /// The requested value.
        requested: String,
        /// The remedy.
        hint: String,
    },
    /// Access control denies the match.
    Denied {
        /// The denying rule, with its file and line.
        reason: String,
    },
    /// They may still match.
    Pending {
        /// The missing part.
        reason: String,
    },
}

/// Matching report of one publisher and one subscription of a topic.
#[derive(Clone, Debug)]
pub struct MatchReport {
    /// As it was announced.
    pub publisher: EndpointInfo,
    /// As it was announced.
    pub subscription: EndpointInfo,
    /// Every reason found; a single [`MatchOutcome::Matched`] if they are matched.
    pub outcomes: Vec<MatchOutcome>,
}

impl MatchReport {
    /// Whether the subscription has acknowledged nothing of the publisher for 2 s
    /// although messages are outstanding, as the publisher announces.
    pub fn is_stalled(&self) -> bool {
        let stalled = &self.publisher.stalled_subscriptions;
        stalled.contains(&self.subscription.gid)
    }

    /// Why a client and a server may not understand each other, although their endpoints
    /// match: their stacks relate replies to requests in different ways. `None` for other
    /// topics than those of services.
    pub fn service_mismatch(&self) -> Option<String> {
        let (publisher, subscription) = (&self.publisher, &self.subscription);
        let is_of_service = is_service_topic(&publisher.data.topic);
        is_of_service
            .then(|| service_mismatch(publisher.vendor, subscription.vendor))
            .flatten()
    }

    /// How many messages of the publisher the subscription has dropped, because they do
    /// not decode as its type, as it announces.
    pub fn undecodable_count(&self) -> u32 {
        let mut counts = self.subscription.undecodable.iter();
        let of_publisher = counts.find(|(publisher, _)| *publisher == self.publisher.gid);
        of_publisher.map_or(0, |(_, count)| *count)
    }
}

impl Graph {
    /// The graph that this runtime sees. `context` lives as long as the graph does.
    #[doc(hidden)]
    pub fn new(core: Arc<Core>, context: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            core,
            _context: context,
        }
    }

    fn runtime_graph(&self) -> &pteros_runtime::graph::Graph {
        self.core.graph()
    }

    /// All nodes, sorted by full name.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes: Vec<NodeInfo> = self
            .runtime_graph()
            .nodes()
            .into_iter()
            .map(node_info)
            .collect();
        nodes.sort_by_key(NodeInfo::fully_qualified_name);
        nodes
    }

    /// All ROS topics with their types, sorted by name, without services.
    pub fn topics(&self) -> Vec<TopicInfo> {
        self.topics_selected_by(|name| match name {
            DdsTopic::Topic(name) => Some(name),
            _ => None,
        })
    }

    /// All DDS topics, sorted by name.
    ///
    /// Those of ROS have their prefix (`rt/chatter`), as do those of services;
    /// topics outside ROS conventions are included (`Square`).
    pub fn dds_topics(&self) -> Vec<TopicInfo> {
        self.grouped_by_name(|dds| Some(dds.to_owned()))
    }

    /// All services with their types, sorted by name.
    pub fn services(&self) -> Vec<TopicInfo> {
        let mut services = self.topics_selected_by(|name| match name {
            DdsTopic::ServiceRequest(name) | DdsTopic::ServiceReply(name) => Some(name),
            _ => None,
        });
        for service in &mut services {
            let types: BTreeSet<String> = service.types.drain(..).map(service_type).collect();
            service.types = types.into_iter().collect();
        }
        services
    }

    fn topics_selected_by(&self, select: impl Fn(DdsTopic) -> Option<String>) -> Vec<TopicInfo> {
        self.grouped_by_name(|dds| select(from_dds_topic(dds)))
    }

    fn grouped_by_name(&self, select: impl Fn(&str) -> Option<String>) -> Vec<TopicInfo> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.runtime_graph().for_each_topic(|dds, ty| {
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

    /// The publishers of a topic.
    ///
    /// The topic is given by its fully qualified name (`/scan`) or DDS name
    /// (`rt/scan`, `Square`). Empty if there are none or the name is neither.
    ///
    /// Empty if there are none or the name is neither.
    pub fn publishers(&self, topic: &str) -> Vec<EndpointInfo> {
        self.endpoints_of_topic(topic, EndpointKind::Publisher)
    }

    /// The subscriptions of a topic, named as for [`Graph::publishers`].
    pub fn subscriptions(&self, topic: &str) -> Vec<EndpointInfo> {
        self.endpoints_of_topic(topic, EndpointKind::Subscription)
    }

    fn endpoints_of_topic(&self, topic: &str, kind: EndpointKind) -> Vec<EndpointInfo> {
        let nodes = self.runtime_graph().nodes();
        let mut found: Vec<EndpointInfo> = self
            .runtime_graph()
            .endpoints_if(|guid, name| {
                kind_of(guid) == kind && (name == topic || ros_topic(name) == topic)
            })
            .into_iter()
            .map(|e| self.endpoint_info(e, &nodes))
            .collect();
        found.sort_by_key(|e| e.gid);
        found
    }

    /// All endpoints of a node, of topics and services, with their ROS names.
    pub fn endpoints_of_node(&self, node: &NodeInfo) -> Vec<(DdsTopic, EndpointInfo)> {
        let nodes = self.runtime_graph().nodes();
        let Some(found) = nodes.iter().find(|n| {
            n.name == node.name
                && n.namespace == node.namespace
                && n.participant == node.participant.prefix
        }) else {
            return Vec::new();
        };
        let own = |guid: &Guid| found.readers.contains(guid) || found.writers.contains(guid);
        let mut list: Vec<_> = self
            .runtime_graph()
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
        let owner = owner_of(nodes, &data);
        let (vendor, enclave) = if endpoint.local {
            let own = &self.core.options().enclave;
            (VendorId::PTEROS, Some(own.clone()))
        } else {
            self.runtime_graph()
                .participant(data.guid.prefix)
                .map(|p| (p.vendor, enclave_of(&p)))
                .unwrap_or_default()
        };
        EndpointInfo {
            node_name: owner.map(|n| n.name.clone()),
            node_namespace: owner.map(|n| n.namespace.clone()),
            topic_type: type_of(&data.type_name),
            type_hash: announced_type_hash(&data),
            kind: kind_of(data.guid),
            gid: data.guid,
            qos: QosProfile::from_endpoint(&data.qos)
                .user_data(free_user_data(&data.qos.user_data)),
            vendor,
            enclave,
            content_filter: data.content_filter.clone(),
            stalled_subscriptions: data.stalled_readers.clone(),
            undecodable: data.undecodable.clone(),
            local: endpoint.local,
            data,
        }
    }

    /// A number that grows with every change of the graph.
    pub fn revision(&self) -> u64 {
        self.runtime_graph().revision()
    }

    /// Waits for a change of the graph.
    ///
    /// Returns when the revision differs from `since`, with the current one, or
    /// with `since` if nothing changed.
    ///
    /// Blocks, at most `timeout` or until the context shuts down. Drives the
    /// network itself and runs no callbacks.
    pub fn wait_for_change(&self, since: u64, timeout: Duration) -> u64 {
        self.wait_until(timeout, || self.revision() != since);
        self.revision()
    }

    /// Waits until `done` returns true; returns its last result.
    ///
    /// `done` runs after every change and should be quick. Blocks, at most
    /// `timeout` or until the context shuts down. Drives the network itself and
    /// runs no callbacks.
    pub fn wait_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        let core = &self.core;
        let queue: Arc<ReadyQueue> = core.ready_queue();
        let until = core.platform.now().after(timeout.into());
        core.driver().drive_until(&queue, until, done)
    }

    /// Reports for each pair of a topic whether it matches.
    ///
    /// Includes how messages travel, and if the pair does not match, why. At most
    /// [`MATCH_REPORTS_MAX`] pairs are reported, of the first publishers. Allocates.
    pub fn match_reports(&self, topic: &str) -> Vec<MatchReport> {
        let subscriptions = self.subscriptions(topic);
        let all = || subscriptions.iter();
        self.reports_of(self.publishers(topic).iter().map(|p| (p, all())))
    }

    /// As [`match_reports`](Self::match_reports), for the pairs with an endpoint of
    /// this context. Looks at no other pair, so that its cost does not grow with the
    /// square of the endpoints.
    pub fn local_match_reports(&self, topic: &str) -> Vec<MatchReport> {
        let subscriptions = self.subscriptions(topic);
        let (local, remote): (Vec<_>, Vec<_>) = subscriptions.iter().partition(|s| s.local);
        let publishers = self.publishers(topic);
        let pairs = publishers.iter().map(|publisher| {
            let others: &[&EndpointInfo] = if publisher.local { &remote } else { &[] };
            (publisher, local.iter().chain(others).copied())
        });
        self.reports_of(pairs)
    }

    /// The transports of this context beside RTPS that cannot carry an endpoint, each with the
    /// reason. Contexts that only such a transport reaches do not see it.
    pub fn transports_without(&self, endpoint: &EndpointInfo) -> Vec<(String, &'static str)> {
        self.core.transports().transports_without(&endpoint.data)
    }

    /// Reports on publishers, each with subscriptions.
    fn reports_of<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a EndpointInfo, impl Iterator<Item = &'a EndpointInfo>)>,
    ) -> Vec<MatchReport> {
        pairs
            .flat_map(|(publisher, subscriptions)| subscriptions.map(move |s| (publisher, s)))
            .take(MATCH_REPORTS_MAX)
            .map(|(publisher, subscription)| MatchReport {
                outcomes: self.match_outcomes(publisher, subscription),
                publisher: publisher.clone(),
                subscription: subscription.clone(),
            })
            .collect()
    }

    fn match_outcomes(
        &self,
        publisher: &EndpointInfo,
        subscription: &EndpointInfo,
    ) -> Vec<MatchOutcome> {
        if publisher.topic_type != subscription.topic_type {
            return vec![MatchOutcome::Incompatible {
                policy: "type".into(),
                offered: publisher.topic_type.clone(),
                requested: subscription.topic_type.clone(),
                hint: "give both the same type, or one of the topics another name".into(),
            }];
        }
        if announce_other_versions(&publisher.data, &subscription.data) {
            let name = &publisher.topic_type;
            let version = |info: &EndpointInfo| {
                let hash = info.type_hash.map(|hash| hash.to_string());
                format!("{name} with type hash {}", hash.unwrap_or_default())
            };
            return vec![MatchOutcome::Incompatible {
                policy: "type".into(),
                offered: version(publisher),
                requested: version(subscription),
                hint: format!("build both from the same definition of {name}"),
            }];
        }
        let blocked: Vec<MatchOutcome> = mismatches(&publisher.data.qos, &subscription.data.qos)
            .into_iter()
            .map(|m| MatchOutcome::Incompatible {
                policy: m.policy.name().into(),
                offered: m.offered,
                requested: m.requested,
                hint: m.advice,
            })
            .collect();
        if !blocked.is_empty() {
            return blocked;
        }
        vec![self.match_outcome(publisher, subscription)]
    }

    fn match_outcome(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> MatchOutcome {
        for endpoint in [publisher, subscription] {
            let prefix = endpoint.gid.prefix;
            if !endpoint.local && self.runtime_graph().participant(prefix).is_none() {
                return MatchOutcome::Pending {
                    reason: format!("participant {prefix} has not announced itself yet"),
                };
            }
        }
        let core = &self.core;
        if let Some(reason) = core
            .security()
            .why_denied(&publisher.data, &subscription.data)
        {
            return MatchOutcome::Denied { reason };
        }
        let same = publisher.gid.prefix == subscription.gid.prefix;
        let path = match same {
            true if publisher.vendor == VendorId::PTEROS => "intra-process".to_owned(),
            true => "within one participant".to_owned(),
            false => self.path_between(publisher, subscription),
        };
        MatchOutcome::Matched { path }
    }

    /// The path between two processes. It is known if this context is one of them,
    /// else derived from what both announce.
    fn path_between(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> String {
        let core = &self.core;
        let ends = [publisher, subscription];
        let mut transports = ends
            .iter()
            .filter_map(|end| core.transports().other_transport_to(end.gid));
        if let Some(transport) = transports.next() {
            // Two processes of another host may share its memory: they do not tell.
            let may_share = transports.next().is_some();
            let beside = if may_share {
                ", or shared memory of their host"
            } else {
                ""
            };
            return format!("{}{beside}", transport.name());
        }
        let (ours, theirs) = (publisher.gid.prefix, subscription.gid.prefix);
        let reason = match core.prefix() {
            own if own == ours => core.discovery().delivery_path_to(subscription.gid).reason,
            own if own == theirs => core.discovery().delivery_path_to(publisher.gid).reason,
            _ => core.discovery().why_no_shared_memory(ours, theirs),
        };
        match reason {
            None => "shared memory".into(),
            Some(reason) => {
                let path = self.udp_path(publisher, subscription);
                format!("{path} (no shared memory: {reason})")
            }
        }
    }

    /// Where the publisher sends datagrams for this subscription, as announced.
    fn udp_path(&self, publisher: &EndpointInfo, subscription: &EndpointInfo) -> String {
        let announced = |e: &EndpointInfo| {
            if !e.data.unicast.is_empty() {
                return e.data.unicast.first().copied();
            }
            if e.local {
                return None;
            }
            let participant = self.runtime_graph().participant(e.gid.prefix)?;
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
            .with(pteros_runtime::rtps::id::EntityId::PARTICIPANT),
        namespace: node.namespace,
        name: node.name,
        enclave: node.enclave,
    }
}

fn kind_of(guid: Guid) -> EndpointKind {
    if guid.entity.is_writer() {
        EndpointKind::Publisher
    } else {
        EndpointKind::Subscription
    }
}

/// The ROS name of a topic; names outside ROS conventions stay as they are.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) => name,
        _ => dds.to_owned(),
    }
}

/// The RIHS01 type hash in the endpoint's USER_DATA.
fn announced_type_hash(data: &EndpointData) -> Option<TypeHash> {
    let of_endpoint = match is_service_topic(&data.topic) {
        true => service_type_hash,
        false => type_hash,
    };
    of_endpoint(&data.qos.user_data)?.parse().ok()
}

fn type_of(dds: &str) -> String {
    ros_type_name(dds).unwrap_or_else(|| dds.to_owned())
}

/// `pkg/srv/Name` from the type name of a request or response.
fn service_type(name: String) -> String {
    ["_Request", "_Response"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .map_or_else(|| name.clone(), str::to_owned)
}
