//! Names and types as rmw and rclpy list them, and the information on an endpoint
//! (`rmw_topic_endpoint_info_t`), from the runtime's graph.

use std::collections::{BTreeMap, BTreeSet};

use pteros_msg::hash::TypeHash;
use pteros_runtime::graph::{Graph, GraphEndpoint, GraphNode};
use pteros_runtime::names::{
    DdsTopic, NameError, NameKind, dds_topic, from_dds_topic, validate_namespace, validate_node,
};
use pteros_runtime::rtps::discovery::data::EndpointData;
use pteros_runtime::rtps::id::Guid;

use super::{announced_type_hash, service_type, type_of};
use crate::rmw_qos::RmwQosProfile;

/// Names, each with its types; both sorted.
pub type NamesAndTypes = Vec<(String, Vec<String>)>;

/// Which names a list shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesOf {
    /// Topics of ROS.
    Topics,
    /// All DDS topics under their own names (`no_demangle`).
    DdsTopics,
    /// Services of servers and clients.
    Services,
}

impl NamesOf {
    /// Topics, as `no_demangle` says.
    pub fn topics(no_demangle: bool) -> Self {
        if no_demangle {
            Self::DdsTopics
        } else {
            Self::Topics
        }
    }
}

/// Which endpoints of a node are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointRole {
    /// DataReaders.
    Subscription,
    /// DataWriters.
    Publisher,
    /// DataReaders of requests.
    Service,
    /// DataWriters of requests.
    Client,
}

impl EndpointRole {
    /// The kind of its names, the prefix and suffix that the DDS topic adds, and whether it
    /// is a DataWriter.
    pub fn counted(self) -> (NameKind, &'static str, &'static str, bool) {
        match self {
            Self::Subscription => (NameKind::Topic, "rt", "", false),
            Self::Publisher => (NameKind::Topic, "rt", "", true),
            Self::Service => (NameKind::Service, "rq", "Request", false),
            Self::Client => (NameKind::Service, "rq", "Request", true),
        }
    }

    fn includes(self, guid: Guid, topic: &str) -> bool {
        let is_request = || matches!(from_dds_topic(topic), DdsTopic::ServiceRequest(_));
        match self {
            Self::Subscription => guid.entity.is_reader(),
            Self::Publisher => guid.entity.is_writer(),
            Self::Service => guid.entity.is_reader() && is_request(),
            Self::Client => guid.entity.is_writer() && is_request(),
        }
    }
}

/// Why a query about a node has no answer.
#[derive(thiserror::Error)]
pub enum NodeQueryError {
    /// The name or the namespace is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No node of the graph has the name.
    #[error("there is no node {name:?} in namespace {namespace:?}")]
    NoSuchNode {
        /// The name without namespace.
        name: String,
        /// `/` for a node without one.
        namespace: String,
    },
}

pteros_msg::debug_as_display!(NodeQueryError);

/// Names and types of these endpoints.
pub fn names_and_types(endpoints: &[GraphEndpoint], listed: NamesOf) -> NamesAndTypes {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for endpoint in endpoints {
        let data = &endpoint.data;
        let named = match (listed, from_dds_topic(&data.topic)) {
            (NamesOf::DdsTopics, _) => Some((data.topic.clone(), data.type_name.clone())),
            (NamesOf::Topics, DdsTopic::Topic(name)) => Some((name, type_of(&data.type_name))),
            (NamesOf::Services, DdsTopic::ServiceRequest(name) | DdsTopic::ServiceReply(name)) => {
                Some((name, service_type(type_of(&data.type_name))))
            }
            _ => None,
        };
        if let Some((name, ty)) = named {
            found.entry(name).or_default().insert(ty);
        }
    }
    let found = found.into_iter();
    found
        .map(|(name, types)| (name, types.into_iter().collect()))
        .collect()
}

/// Names and types of a node's endpoints of one role.
///
/// # Errors
/// See [`NodeQueryError`].
pub fn names_and_types_of_node(
    graph: &Graph,
    (name, namespace): (&str, &str),
    role: EndpointRole,
    listed: NamesOf,
) -> Result<NamesAndTypes, NodeQueryError> {
    validate_node(name)?;
    validate_namespace(namespace)?;
    let nodes = graph.nodes();
    let is_asked = |node: &&GraphNode| node.name == name && node.namespace == namespace;
    let Some(node) = nodes.iter().find(is_asked) else {
        return Err(NodeQueryError::NoSuchNode {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        });
    };
    // A participant can name endpoints of another one; see `owner_of`.
    let listed_by_node = node.readers.iter().chain(&node.writers).copied();
    let owned: BTreeSet<Guid> = listed_by_node
        .filter(|guid| guid.prefix == node.participant)
        .collect();
    let endpoints =
        graph.endpoints_if(|guid, topic| owned.contains(&guid) && role.includes(guid, topic));
    Ok(names_and_types(&endpoints, listed))
}

/// Actions among topics, by their feedback.
pub fn action_names_and_types(topics: NamesAndTypes) -> NamesAndTypes {
    let action = |(name, types): (String, Vec<String>)| {
        let name = name.strip_suffix("/_action/feedback")?.to_owned();
        let types = types.iter();
        let types = types.filter_map(|ty| ty.strip_suffix("_FeedbackMessage").map(Into::into));
        Some((name, types.collect()))
    };
    topics.into_iter().filter_map(action).collect()
}

/// `rmw_topic_endpoint_info_t`.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicEndpointInfo {
    /// Its node's name; `_NODE_NAME_UNKNOWN_` if its participant has not announced one.
    pub node_name: String,
    /// Its node's namespace; `_NODE_NAMESPACE_UNKNOWN_` without one.
    pub node_namespace: String,
    /// `std_msgs/msg/String`, or the DDS name with `no_mangle`.
    pub topic_type: String,
    /// The RIHS01 type hash, if announced.
    pub type_hash: Option<TypeHash>,
    /// Publisher or subscription.
    pub is_publisher: bool,
    /// The GUID of its DDS endpoint: prefix, then entity id.
    pub gid: [u8; 16],
    /// Its QoS as announced.
    pub qos: RmwQosProfile,
}

/// The node that has an endpoint.
pub(super) fn owner_of<'n>(nodes: &'n [GraphNode], data: &EndpointData) -> Option<&'n GraphNode> {
    nodes.iter().find(|node| {
        let endpoints = if data.guid.entity.is_writer() {
            &node.writers
        } else {
            &node.readers
        };
        node.participant == data.guid.prefix && endpoints.contains(&data.guid)
    })
}

/// The publishers or the subscriptions of a topic; with `no_mangle` it is a DDS topic.
pub fn endpoint_infos(
    graph: &Graph,
    topic: &str,
    no_mangle: bool,
    of_publishers: bool,
) -> Vec<TopicEndpointInfo> {
    let mut endpoints = graph.endpoints_on(&dds_topic(topic, no_mangle));
    endpoints.retain(|endpoint| endpoint.data.guid.entity.is_writer() == of_publishers);
    if endpoints.is_empty() {
        return Vec::new();
    }
    let nodes = graph.nodes();
    let info = |endpoint: GraphEndpoint| {
        let data = &endpoint.data;
        let (name, namespace) = owner_of(&nodes, data).map_or(
            ("_NODE_NAME_UNKNOWN_", "_NODE_NAMESPACE_UNKNOWN_"),
            |node| (node.name.as_str(), node.namespace.as_str()),
        );
        TopicEndpointInfo {
            node_name: name.to_owned(),
            node_namespace: namespace.to_owned(),
            topic_type: if no_mangle {
                data.type_name.clone()
            } else {
                type_of(&data.type_name)
            },
            type_hash: announced_type_hash(data),
            is_publisher: of_publishers,
            gid: data.guid.to_bytes(),
            qos: RmwQosProfile::announced(&data.qos, endpoint.local),
        }
    };
    endpoints.into_iter().map(info).collect()
}

/// The clients or the servers of a service as rmw lists them, those whose two endpoints are
/// known: the reader and the writer, with type and hash of the service.
pub fn service_endpoint_infos(
    graph: &Graph,
    service: &str,
    of_clients: bool,
) -> Vec<[TopicEndpointInfo; 2]> {
    let (requests, replies) = (format!("rq{service}Request"), format!("rr{service}Reply"));
    let (read, written) = match of_clients {
        true => (replies, requests),
        false => (requests, replies),
    };
    let infos = |topic: &str, is_writer| {
        let mut infos = endpoint_infos(graph, topic, true, is_writer);
        for info in &mut infos {
            info.topic_type = service_type(type_of(&info.topic_type));
        }
        infos
    };
    let owner = |info: &TopicEndpointInfo| {
        let participant = info.gid.first_chunk::<12>().copied();
        let node = (info.node_namespace.clone(), info.node_name.clone());
        (participant, node)
    };
    let pairs = with_writers(infos(&read, false), infos(&written, true), owner);
    let pairs = pairs.into_iter();
    pairs
        .filter_map(|(reader, writer)| Some([reader, writer?]))
        .collect()
}

/// The readers of a service's clients or servers, each with a writer of the same owner. A
/// writer is missing until discovery has it.
pub fn with_writers<T, O: PartialEq>(
    readers: Vec<T>,
    mut writers: Vec<T>,
    owner: impl Fn(&T) -> O,
) -> Vec<(T, Option<T>)> {
    let pair = |reader: T| {
        let at = (writers.iter()).position(|writer| owner(writer) == owner(&reader));
        let writer = at.map(|at| writers.remove(at));
        (reader, writer)
    };
    readers.into_iter().map(pair).collect()
}
