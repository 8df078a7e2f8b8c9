//! Matching between the files of a run: which pairs match, and which do not
//! although the names do.

use std::collections::{BTreeMap, BTreeSet};

use pteros::qos::report::mismatches;

use super::document::{PublisherSpec, Topology};
use super::problem::TopologyProblem;

/// Pairs with the same name that do not match, over all files of a run: two types
/// of a topic, incompatible QoS, a duplicate node name.
pub(super) fn incompatible_pairs(topologies: &[Topology]) -> Vec<TopologyProblem> {
    let mut found = Vec::new();
    let mut types: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let nodes = || {
        let all = topologies.iter();
        all.flat_map(|topology| topology.nodes.iter().map(move |node| (topology, node)))
    };
    for (topology, node) in nodes() {
        let problem = |message: String| TopologyProblem {
            file: topology.file.clone(),
            place: format!("node \"{}\"", node.name),
            value: String::new(),
            message,
        };
        if !names.insert((&node.namespace, &node.name)) {
            found.push(problem("another node has this name, too".into()));
        }
        let publishers = node.publishers.iter().map(|p| (&p.full_topic, &p.ty));
        let subscriptions = node.subscriptions.iter().map(|s| (&s.full_topic, &s.ty));
        for (topic, ty) in publishers.chain(subscriptions) {
            let (first, of) = types.entry(topic).or_insert((ty, &node.name));
            if first != ty {
                found.push(problem(format!(
                    "topic {topic} is {ty} here and {first} at node \"{of}\": they do not match"
                )));
            }
        }
        for subscription in &node.subscriptions {
            for (_, other) in nodes() {
                let publishers = other.publishers.iter();
                let same = publishers.filter(|p| p.full_topic == subscription.full_topic);
                for publisher in same {
                    let offered = publisher.qos.to_endpoint();
                    let requested = subscription.qos.to_reader();
                    for mismatch in mismatches(&offered, &requested) {
                        found.push(problem(format!(
                            "receives nothing of node \"{}\" on {}: {mismatch}",
                            other.name, subscription.full_topic
                        )));
                    }
                }
            }
        }
    }
    found
}

/// Number of all subscriptions that match a publisher.
pub(super) fn matching_subscriptions(publisher: &PublisherSpec, topologies: &[Topology]) -> usize {
    let nodes = topologies.iter().flat_map(|topology| &topology.nodes);
    let subscriptions = nodes.flat_map(|node| &node.subscriptions);
    let offered = publisher.qos.to_endpoint();
    subscriptions
        .filter(|s| s.full_topic == publisher.full_topic && s.ty == publisher.ty)
        .filter(|s| {
            let convention = s.qos.avoid_ros_namespace_conventions;
            let incompatible = mismatches(&offered, &s.qos.to_reader());
            convention == publisher.qos.avoid_ros_namespace_conventions && incompatible.is_empty()
        })
        .count()
}
