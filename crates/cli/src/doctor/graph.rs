//! Graph checks: duplicate node names, type mismatches and incompatible QoS.

use super::finding::{Finding, Findings};
use super::{paths, stacks};
use crate::node::list::node_names;
use crate::session::Session;
use crate::topic::info::stalled_pairs;
use crate::topic::lookup::shown_topics;
use pteros::network::{CoreCounts, DiscoveryServerStatus, ReceiveMemoryUse, SilentParticipant};
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
    check_discovery_servers(&session.context.discovery_servers(), &mut found);
    check_silent(&session.silent_participants(), &mut found);
    stacks::check(graph, &mut found);
    paths::check(session, graph, &mut found);
    check_tables(session, &mut found);
    check_receive_memory(&session.context.receive_memory_use(), &mut found);
    check_rate_limits(&session.context.counts(), &mut found);
    check_duplicate_names(graph, &mut found);
    for topic in topics.iter().take(TOPICS_MAX) {
        check_matching(graph, &topic.name, &mut found);
    }
    found.into_list()
}

/// A full table means that some newcomers are ignored.
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

/// Full receive memory delays messages, or loses them.
fn check_receive_memory(used: &ReceiveMemoryUse, found: &mut Findings) {
    let text = format!(
        "receive memory: {} of at most {} bytes are in use",
        used.reserved, used.limit
    );
    let Some(most) = used.most_refused.filter(|_| used.refused > 0) else {
        if used.reserved > 0 {
            found.ok(text);
        }
        return;
    };
    let at = most
        .address
        .map_or_else(|| "this host".into(), |ip| ip.to_string());
    found.warn(
        format!(
            "{text}; {} samples or records were refused, {} of them of participant {} at {at}",
            used.refused, most.refused, most.prefix
        ),
        "stop what floods the network, or raise limits.participant_memory_bytes and \
         limits.receive_memory_bytes of the contexts",
    );
}

/// Discovery messages beyond the rate limit are dropped.
fn check_rate_limits(counts: &CoreCounts, found: &mut Findings) {
    if counts.rate_limited == 0 {
        return;
    }
    let (address, dropped) = counts.most_rate_limited;
    found.warn(
        format!(
            "{} discovery messages beyond the rate limit were dropped, {dropped} of them from {}",
            counts.rate_limited, address
        ),
        "stop what floods the network with discovery messages",
    );
}

/// Discovery servers relay all other participants.
fn check_discovery_servers(servers: &[DiscoveryServerStatus], found: &mut Findings) {
    for server in servers {
        if server.prefix.is_some() {
            found.ok(server.to_string());
        } else {
            found.error(
                server.to_string(),
                format!(
                    "start it: {}; or correct or unset ROS_DISCOVERY_SERVER",
                    server.start_command()
                ),
            );
        }
    }
}

/// Participants that announce themselves and answer nothing.
fn check_silent(silent: &[SilentParticipant], found: &mut Findings) {
    for one in silent {
        found.warn(
            format!("{one} announces itself and never answers; nothing is exchanged with it"),
            "see whether the network carries packets in both directions: pteros doctor hello",
        );
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

/// The remedy for a subscription that acknowledges nothing.
const STALLED_FIX: &str = "see whether its process is stopped or busy, and whether the network \
                           carries packets in both directions: pteros doctor hello";

fn check_matching(graph: &Graph, topic: &str, found: &mut Findings) {
    if graph.publishers(topic).len() * graph.subscriptions(topic).len() > PAIRS_MAX {
        return;
    }
    for (from, to) in stalled_pairs(&graph.publishers(topic), &graph.subscriptions(topic)) {
        let text = format!(
            "topic {topic}: {to} has acknowledged nothing of {from} for 2 s although messages \
             are outstanding"
        );
        found.warn(text, STALLED_FIX);
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

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::graph::Guid;
    use pteros::network::MemoryHolder;

    fn rows(check: impl FnOnce(&mut Findings)) -> Vec<String> {
        let mut found = Findings::new("graph");
        check(&mut found);
        let list = found.into_list().into_iter();
        list.map(|finding| format!("{:?}: {}", finding.severity, finding.text))
            .collect()
    }

    #[test]
    fn refused_memory_names_the_participant_and_its_address() {
        let mut used = ReceiveMemoryUse {
            reserved: 0,
            records: 0,
            limit: 1_000,
            participant_limit: 500,
            refused: 0,
            largest: None,
            most_refused: None,
        };
        assert_eq!(rows(|found| check_receive_memory(&used, found)).len(), 0);
        used.reserved = 70;
        let text = "receive memory: 70 of at most 1000 bytes are in use";
        assert_eq!(
            rows(|found| check_receive_memory(&used, found)),
            [format!("Ok: {text}")]
        );
        used.refused = 9;
        used.most_refused = Some(MemoryHolder {
            prefix: Guid::UNKNOWN.prefix,
            address: Some([10, 0, 0, 7].into()),
            reserved: 70,
            refused: 8,
        });
        assert_eq!(
            rows(|found| check_receive_memory(&used, found)),
            [format!(
                "Warning: {text}; 9 samples or records were refused, 8 of them of participant \
                 {} at 10.0.0.7",
                Guid::UNKNOWN.prefix
            )]
        );
    }

    #[test]
    fn the_address_with_most_dropped_discovery_messages_is_named() {
        let mut counts = CoreCounts::default();
        assert_eq!(rows(|found| check_rate_limits(&counts, found)).len(), 0);
        counts.rate_limited = 12;
        counts.most_rate_limited = ([10, 0, 0, 9].into(), 11);
        assert_eq!(
            rows(|found| check_rate_limits(&counts, found)),
            [
                "Warning: 12 discovery messages beyond the rate limit were dropped, 11 of them \
                 from 10.0.0.9"
            ]
        );
    }
}
