//! Who is there, and what of them does not go together.

use super::finding::{Finding, Findings};
use super::stacks;
use crate::node::list::node_names;
use crate::session::Session;
use crate::topic::known::shown_topics;
use pteros::{Graph, Verdict};
use std::collections::BTreeSet;

/// Topics that are looked at for endpoints that do not match, at most.
const TOPICS_MAX: usize = 500;
/// Pairs of one topic.
const PAIRS_MAX: usize = 2_500;

/// Looks at the graph as it is known now.
pub fn check(session: &Session, graph: &Graph) -> Vec<Finding> {
    let mut found = Findings::new("graph");
    let topics = shown_topics(session, graph, false);
    for topic in &topics {
        let name = &topic.name;
        let publishers = graph.publishers(name);
        let subscriptions = graph.subscriptions(name);
        let mut hashes: Vec<_> = publishers
            .iter()
            .chain(&subscriptions)
            .filter_map(|endpoint| endpoint.type_hash)
            .collect();
        hashes.sort();
        hashes.dedup();
        if topic.types.len() > 1 {
            found.warn(
                format!("topic {name} has several types: {}", topic.types.join(", ")),
                format!("give one of them another name; pteros topic info -v {name}"),
            );
        } else if hashes.len() > 1 {
            found.warn(
                format!(
                    "topic {name}: its endpoints have different versions of {}",
                    topic.types.join(", ")
                ),
                format!("build all of them with the same definition; pteros topic info -v {name}"),
            );
        }
    }
    stacks::check(graph, &mut found);
    twins(graph, &mut found);
    for topic in topics.iter().take(TOPICS_MAX) {
        mismatches(graph, &topic.name, &mut found);
    }
    found.into_list()
}

fn twins(graph: &Graph, found: &mut Findings) {
    let names = node_names(graph, true);
    let mut twins: Vec<&String> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| &pair[0])
        .collect();
    twins.dedup();
    for name in &twins {
        let count = names.iter().filter(|other| other == name).count();
        found.warn(
            format!("{count} nodes are called {name}"),
            "start them with different names: --ros-args -r __node:=NAME, or -r __ns:=/PLACE",
        );
    }
    if twins.is_empty() && !names.is_empty() {
        found.fine("every node has a name of its own");
    }
}

fn mismatches(graph: &Graph, topic: &str, found: &mut Findings) {
    if graph.publishers(topic).len() * graph.subscriptions(topic).len() > PAIRS_MAX {
        return;
    }
    let mut said = BTreeSet::new();
    for pair in graph.why(topic) {
        for verdict in &pair.verdicts {
            let Verdict::Blocked {
                policy,
                offered,
                requested,
                advice,
            } = verdict
            else {
                continue;
            };
            let text =
                format!("topic {topic}: {policy} {offered} is offered, {requested} requested");
            if policy != "type" && said.insert(text.clone()) {
                found.warn(text, format!("{advice}; pteros topic why {topic}"));
            }
        }
    }
}
