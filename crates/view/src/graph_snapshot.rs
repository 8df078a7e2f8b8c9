//! Snapshot of the graph: what viewers may see of it, without this server's own node.

use std::collections::{BTreeMap, BTreeSet};

use pteros::graph::EndpointInfo;
use pteros::names::{is_hidden, node_path};
use pteros::{Graph, Node};

use crate::channel::ChannelKey;
use crate::options::{CHANNELS_MAX, NameFilter};

/// Topics and services with their endpoints.
#[derive(Default)]
pub struct GraphSnapshot {
    pub topics: BTreeMap<String, TopicSnapshot>,
    pub services: BTreeMap<String, ServiceSnapshot>,
}

/// A topic.
#[derive(Default)]
pub struct TopicSnapshot {
    pub types: Vec<String>,
    pub publishers: Vec<EndpointInfo>,
    pub subscribers: Vec<EndpointInfo>,
}

/// A service.
#[derive(Default)]
pub struct ServiceSnapshot {
    pub type_name: String,
    /// Names of nodes.
    pub providers: BTreeSet<String>,
}

impl GraphSnapshot {
    /// Reads the graph.
    pub fn read(graph: &Graph, node: &Node, filter: &NameFilter) -> Self {
        let own = node.fully_qualified_name();
        let of_others = |mut endpoints: Vec<EndpointInfo>| {
            endpoints.retain(|endpoint| node_name(endpoint).is_none_or(|name| name != own));
            endpoints
        };
        let is_shown = |name: &str| is_shown(name, filter);
        let topics = graph
            .topics()
            .into_iter()
            .filter(|topic| is_shown(&topic.name));
        let topics = topics.take(CHANNELS_MAX).map(|topic| {
            let snapshot = TopicSnapshot {
                types: topic.types,
                publishers: of_others(graph.publishers(&topic.name)),
                subscribers: of_others(graph.subscriptions(&topic.name)),
            };
            (topic.name, snapshot)
        });
        let services = graph.services().into_iter();
        let services = services.filter(|service| is_shown(&service.name));
        let services = services.take(CHANNELS_MAX).filter_map(|service| {
            let [type_name] = service.types.as_slice() else {
                return None;
            };
            let servers = of_others(graph.subscriptions(&format!("rq{}Request", service.name)));
            let snapshot = ServiceSnapshot {
                type_name: type_name.clone(),
                providers: servers.iter().filter_map(node_name).collect(),
            };
            (!servers.is_empty()).then_some((service.name, snapshot))
        });
        Self {
            topics: topics.collect(),
            services: services.collect(),
        }
    }

    /// Topics that someone publishes, with each of their types.
    pub fn channel_keys(&self) -> BTreeSet<ChannelKey> {
        let published = self.topics.iter();
        published
            .flat_map(|(name, topic)| {
                let types = topic
                    .publishers
                    .iter()
                    .map(|publisher| &publisher.topic_type);
                types.map(move |ty| (name.clone(), ty.clone()))
            })
            .collect()
    }

    /// The publishers of a topic.
    pub fn publishers(&self, topic: &str) -> &[EndpointInfo] {
        let topic = self.topics.get(topic);
        topic.map_or(&[], |topic| topic.publishers.as_slice())
    }
}

/// Whether viewers may see a topic or service. Hidden are those with a `_`, as in ROS 2, but
/// for the parts of actions and the services of containers: panels need them. The filter
/// decides about an action by its name.
fn is_shown(name: &str, filter: &NameFilter) -> bool {
    match name.split_once("/_action/") {
        Some((action, part)) => !is_hidden(action) && !is_hidden(part) && filter(action),
        None => !is_hidden(&name.replacen("/_container/", "/", 1)) && filter(name),
    }
}

/// The full name of an endpoint's node, if it is known.
pub fn node_name(endpoint: &EndpointInfo) -> Option<String> {
    let name = endpoint.node_name.as_deref()?;
    let namespace = endpoint.node_namespace.as_deref().unwrap_or("/");
    Some(node_path(namespace, name))
}
