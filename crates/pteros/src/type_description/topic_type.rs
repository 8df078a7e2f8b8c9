//! Types of topics from other participants, for types without a local definition. Messages
//! come from TypeLookup (XTypes), other types from a node's `~/get_type_description`.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use pteros_msg::dynamic::{DynamicType, TypeError};
use pteros_rcl::graph::{AnnouncedTypeError, Graph, NodeInfo};
use pteros_runtime::names::node_path;

use crate::node::Node;
use crate::service::CallError;

/// Timeout of a type request to one node.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest number of nodes that are queried.
const NODES_MAX: usize = 8;

/// Why no other participant described the type of a topic.
pub enum TopicTypeError {
    /// No endpoint announced a usable type, and no node has the service.
    Announced(AnnouncedTypeError),
    /// The last queried node.
    Node(CallError),
    /// The received description is no valid type.
    Invalid(TypeError),
}

pteros_msg::debug_as_display!(TopicTypeError);

impl fmt::Display for TopicTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced(error) => error.fmt(f),
            Self::Node(error) => error.fmt(f),
            Self::Invalid(error) => {
                write!(f, "the type that a node of the topic describes: {error}")
            }
        }
    }
}

impl std::error::Error for TopicTypeError {}

impl Node {
    /// Fetches the type of a topic with a ROS or a DDS name: as its endpoints announce it,
    /// else from the nodes that use it, at most eight. Blocks, at most `timeout` and half a
    /// second per node; drives the network itself.
    ///
    /// # Errors
    /// [`TopicTypeError`].
    pub fn fetch_topic_type(
        &self,
        topic: &str,
        timeout: Duration,
    ) -> Result<DynamicType, TopicTypeError> {
        let graph = self.context().graph();
        let announced_error = match graph.announced_type(topic, timeout) {
            Ok(ty) => return Ok(ty),
            Err(announced_error) => announced_error,
        };
        let nodes = graph.nodes();
        let endpoints = graph.publishers(topic).into_iter();
        let mut queried = BTreeSet::new();
        let mut query_error = None;
        for endpoint in endpoints.chain(graph.subscriptions(topic)) {
            let (Some(hash), Some(name)) = (endpoint.type_hash, &endpoint.node_name) else {
                continue;
            };
            let namespace = endpoint.node_namespace.as_deref().unwrap_or("/");
            let node = node_path(namespace, name);
            if endpoint.local || queried.len() >= NODES_MAX || !queried.insert(node.clone()) {
                continue;
            }
            let known = nodes.iter().find(|n| n.fully_qualified_name() == node);
            let server = known.and_then(|known| description_server(&graph, &nodes, known));
            let server = server.unwrap_or(node);
            match self.fetch_type_description(&server, &endpoint.topic_type, hash, NODE_TIMEOUT) {
                Ok(remote) => {
                    return DynamicType::new(&remote.description).map_err(TopicTypeError::Invalid);
                }
                // ROS 2 has had this service since Iron.
                Err(CallError::NoServer { .. }) => {}
                Err(error) => query_error = Some(error),
            }
        }
        use AnnouncedTypeError::{NoReply, NotAnnounced};
        Err(match (announced_error, query_error) {
            (NotAnnounced | NoReply, Some(query_error)) => TopicTypeError::Node(query_error),
            (announced_error, _) => TopicTypeError::Announced(announced_error),
        })
    }
}

/// The full name of the node that describes the types of a node: itself, or another
/// one of its process, which answers for all of them.
pub fn description_server(graph: &Graph, nodes: &[NodeInfo], node: &NodeInfo) -> Option<String> {
    let services = graph.services();
    let of_process = nodes.iter().filter(|n| n.participant == node.participant);
    std::iter::once(node)
        .chain(of_process)
        .map(NodeInfo::fully_qualified_name)
        .find(|name| {
            let service = format!("{name}/get_type_description");
            services.iter().any(|offered| offered.name == service)
        })
}
