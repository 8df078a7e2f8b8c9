//! Graph checks: duplicate node names, type mismatches and incompatible QoS.

use super::finding::{Finding, Findings};
use super::{paths, stacks};
use crate::node::list::node_names;
use crate::session::Session;
use crate::topic::lookup::shown_topics;
use pteros::{Graph, graph::MatchOutcome};
use std::collections::BTreeSet;

/// Largest number of topics that are checked for mismatches.
const TOPICS_MAX: usize = 500;
/// Largest number of endpoint pairs per topic.
const PAIRS_MAX: usize = 2_500;

/// Checks the discovered graph.
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
                format!("rename one of the topics; pteros topic info -v {name}"),
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
    check_forgery(session, &mut found);
    stacks::check(graph, &mut found);
    paths::check(session, graph, &mut found);
    check_tables(session, &mut found);
    check_duplicate_names(graph, &mut found);
    for topic in topics.iter().take(TOPICS_MAX) {
        check_matching(graph, &topic.name, &mut found);
    }
    found.into_list()
}

/// A full table means that some newcomers are not heard.
fn check_tables(session: &Session, found: &mut Findings) {
    for table in session.context.table_uses() {
        let text = format!(
            "{} of at most {} remote {}, {} from {}",
            table.held, table.limit, table.entries, table.held_by_holder, table.holder
        );
        if table.held >= table.limit.saturating_sub(table.limit / 8).max(1) {
            found.warn(
                text,
                format!(
                    "stop what floods the network, or raise limits.{} of the contexts",
                    table.limit_field
                ),
            );
        } else if table.held > 0 {
            found.ok(text);
        }
    }
}

/// Packets in the name of a participant that came from elsewhere.
fn check_forgery(session: &Session, found: &mut Findings) {
    let counts = session.context.counts();
    if counts.foreign_sources > 0 {
        found.warn(
            format!(
                "{} packets in the name of a participant came from an address where it is not",
                counts.foreign_sources
            ),
            "they were dropped; the log names participant and address; secure the graph against \
             forgery: docs/tutorials/security.md",
        );
    }
    if counts.returned_participants > 0 {
        found.warn(
            format!(
                "{} participants answered after their end was announced",
                counts.returned_participants
            ),
            "somebody may forge packets; secure the graph: docs/tutorials/security.md",
        );
    }
}

fn check_duplicate_names(graph: &Graph, found: &mut Findings) {
    let names = node_names(graph, true);
    let mut duplicates: Vec<&String> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| &pair[0])
        .collect();
    duplicates.dedup();
    for name in &duplicates {
        let count = names.iter().filter(|other| other == name).count();
        found.warn(
            format!("{count} nodes have the name {name}"),
            "start them with different names: --ros-args -r __node:=NAME, or -r __ns:=/PLACE",
        );
    }
    if duplicates.is_empty() && !names.is_empty() {
        found.ok("all node names are unique");
    }
}

fn check_matching(graph: &Graph, topic: &str, found: &mut Findings) {
    if graph.publishers(topic).len() * graph.subscriptions(topic).len() > PAIRS_MAX {
        return;
    }
    let mut reported = BTreeSet::new();
    for pair in graph.match_reports(topic) {
        for outcome in &pair.outcomes {
            let MatchOutcome::Incompatible {
                policy,
                offered,
                requested,
                hint: advice,
            } = outcome
            else {
                continue;
            };
            let text = format!("topic {topic}: {policy} offered {offered}, requested {requested}");
            if policy != "type" && reported.insert(text.clone()) {
                found.warn(text, format!("{advice}; pteros topic why {topic}"));
            }
        }
    }
}
