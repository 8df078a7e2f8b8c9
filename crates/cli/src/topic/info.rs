//! `pteros topic info`.

use super::lookup::find_topic;
use crate::cli_context::CliContext;
use crate::network_paths;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use pteros::qos::{
    DestinationOrder, DurabilityService, History, HistoryPolicy, Ownership, QosProfile,
    Representation,
};
use pteros::{
    Context, Graph,
    graph::{EndpointInfo, Guid, MatchOutcome, MatchReport, VendorId},
    network::PathInfo,
    shared_memory::ConnectionTotals,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Arguments of `topic info`.
#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show node, type, type hash, GID and QoS of every publisher and subscription,
    /// as ros2 does
    #[arg(short = 'v', long)]
    verbose: bool,
    /// As --verbose, with all QoS policies and content filters, the delivery path of
    /// every match, network paths, subscriptions that acknowledge nothing or drop
    /// messages that are not of their type, and what shared memory has carried and
    /// dropped, up to four seconds ago
    #[arg(long)]
    details: bool,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

impl Info {
    /// Prints the type and the endpoints of the topic.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open_with_standard_topics(cli)?;
        let name = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.discovery);
        let topic = find_topic(&session, &graph, &name)?;
        let publishers = graph.publishers(&name);
        let subscriptions = graph.subscriptions(&name);
        if cli.console.json {
            return Ok(cli.console.json(&json!({
                "name": topic.name,
                "types": topic.types,
                "publishers": publishers.iter().map(endpoint_json).collect::<Vec<_>>(),
                "subscriptions": subscriptions.iter().map(endpoint_json).collect::<Vec<_>>(),
                "stalled": stalled_pairs(&publishers, &subscriptions).iter().map(|(from, to)| json!({"publisher": from, "subscription": to})).collect::<Vec<_>>(),
                "undecodable": graph.match_reports(&name).iter().filter(|pair| pair.undecodable_count() > 0).map(undecodable_json).collect::<Vec<_>>(),
                "matches": matches(&graph.match_reports(&name)).map(|(pair, path)| match_json(pair, path)).collect::<Vec<_>>(),
                "connections": connections_by_process(&session.context, publishers.iter().chain(&subscriptions))
                    .iter()
                    .map(|(nodes, totals)| connections_json(nodes, totals))
                    .collect::<Vec<_>>(),
                "paths": paths_by_process(&session.context, publishers.iter().chain(&subscriptions))
                    .iter()
                    .map(|(nodes, paths)| network_paths::json(nodes, paths))
                    .collect::<Vec<_>>(),
            }))?);
        }
        let types = match topic.types.as_slice() {
            [only] => only.clone(),
            several => format!("{several:?}").replace('"', "'"),
        };
        let types = escape_line(&types);
        let verbose = self.verbose || self.details;
        let end = if verbose { "\n\n" } else { "\n" };
        let mut text = format!("Type: {types}{end}");
        let blocks = [
            ("Publisher", "PUBLISHER", &publishers),
            ("Subscription", "SUBSCRIPTION", &subscriptions),
        ];
        for (noun, kind, endpoints) in blocks {
            text += &format!("{noun} count: {}{end}", endpoints.len());
            for endpoint in endpoints.iter().filter(|_| verbose) {
                text += &endpoint_text(endpoint, kind, self.details);
                text += end;
            }
        }
        if self.details {
            text += &matches_text(&graph.match_reports(&name));
            for (from, to) in stalled_pairs(&publishers, &subscriptions) {
                let line = format!("{to} has acknowledged nothing of {from} for 2 s");
                text += &format!("  {}\n", escape_line(&line));
            }
            text += &undecodable_text(&graph.match_reports(&name));
            let endpoints = || publishers.iter().chain(&subscriptions);
            text += &paths_text(&session.context, endpoints(), 1);
            text += &connections_text(&session.context, endpoints());
        } else if self.verbose {
            // With one address each, the output is that of ros2.
            let endpoints = publishers.iter().chain(&subscriptions);
            text += &paths_text(&session.context, endpoints, 2);
        }
        cli.console.text(&text)?;
        Ok(())
    }
}

/// Publishers and the subscriptions that acknowledge nothing of theirs, by name. A
/// process that is stopped announces itself to no later process, so its
/// subscription has no name then, and stands with its GID.
pub fn stalled_pairs(
    publishers: &[EndpointInfo],
    subscriptions: &[EndpointInfo],
) -> Vec<(String, String)> {
    let name_of = |gid: &Guid| {
        let known = subscriptions.iter().find(|one| one.gid == *gid);
        let path = known.map(node_path);
        path.unwrap_or_else(|| format!("subscription {}", guid_text(*gid)))
    };
    let of = |publisher: &EndpointInfo| -> Vec<_> {
        let from = node_path(publisher);
        let stalled = publisher.stalled_subscriptions.iter();
        stalled.map(|gid| (from.clone(), name_of(gid))).collect()
    };
    publishers.iter().flat_map(of).collect()
}

/// Messages that subscriptions dropped, because they do not decode as their type.
fn undecodable_text(pairs: &[MatchReport]) -> String {
    let dropping = pairs.iter().filter(|pair| pair.undecodable_count() > 0);
    let lines = dropping.map(|pair| {
        let (from, to) = (node_path(&pair.publisher), node_path(&pair.subscription));
        let count = pair.undecodable_count();
        let line = format!("{to} has dropped {count} messages of {from}: not of its type");
        format!("  {}\n", escape_line(&line))
    });
    lines.collect()
}

fn undecodable_json(pair: &MatchReport) -> Value {
    json!({
        "publisher": gid_text(&pair.publisher),
        "subscription": gid_text(&pair.subscription),
        "count": pair.undecodable_count(),
    })
}

/// The delivery path of each match. `topic why` explains the pairs that do not
/// match.
fn matches_text(pairs: &[MatchReport]) -> String {
    let mut text = String::new();
    for (pair, path) in matches(pairs) {
        let (from, to) = (node_path(&pair.publisher), node_path(&pair.subscription));
        text += &format!("  {} -> {}: {path}\n", escape_line(&from), escape_line(&to));
    }
    if text.is_empty() {
        text
    } else {
        format!("Matches:\n{text}")
    }
}

/// The address in use of each process of these endpoints on other hosts, and why, if it
/// has so many addresses.
fn paths_text<'e>(
    context: &Context,
    endpoints: impl Iterator<Item = &'e EndpointInfo>,
    addresses_min: usize,
) -> String {
    let all = paths_by_process(context, endpoints);
    let lines = all.iter().filter(|(_, paths)| paths.len() >= addresses_min);
    let lines = lines.map(|(nodes, paths)| {
        format!("  {}: {}\n", escape_line(nodes), network_paths::line(paths))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        lines
    } else {
        format!("Network paths from this host:\n{lines}")
    }
}

fn paths_by_process<'e>(
    context: &Context,
    endpoints: impl Iterator<Item = &'e EndpointInfo>,
) -> Vec<(String, Vec<PathInfo>)> {
    let named = endpoints.map(|endpoint| (endpoint.gid, node_path(endpoint)));
    let processes = network_paths::by_process(named).into_iter();
    let paths = processes.map(|(guid, nodes)| (nodes, context.paths_to(guid)));
    paths.filter(|(_, paths)| !paths.is_empty()).collect()
}

/// Messages that shared-memory connections of these endpoints' processes have
/// carried and dropped, as far as the processes publish these counters.
fn connections_text<'e>(
    context: &Context,
    endpoints: impl Iterator<Item = &'e EndpointInfo>,
) -> String {
    let mut text = String::new();
    for (nodes, totals) in connections_by_process(context, endpoints) {
        let ConnectionTotals {
            connections,
            sent,
            received,
            ..
        } = totals;
        let nodes = escape_line(&nodes);
        text += &format!("  {nodes}: {connections} connected, {sent} sent, {received} received");
        let dropped = dropped_by_reason(&totals);
        let named = dropped.iter().filter(|(_, count)| *count > 0);
        let named: Vec<String> = named.map(|(why, count)| format!("{count} {why}")).collect();
        text += &if named.is_empty() {
            ", nothing dropped".into()
        } else {
            format!(", dropped: {}", named.join(", "))
        };
        if totals.samples_lost > 0 {
            let lost = totals.samples_lost;
            text += &format!("; {lost} messages lost by its reliable subscriptions, all topics");
        }
        text += "\n";
    }
    if text.is_empty() {
        text
    } else {
        format!("Shared-memory connections of each process:\n{text}")
    }
}

/// Each process once, with the names of its nodes.
fn connections_by_process<'e>(
    context: &Context,
    endpoints: impl Iterator<Item = &'e EndpointInfo>,
) -> Vec<(String, ConnectionTotals)> {
    let mut processes: BTreeMap<_, (BTreeSet<String>, ConnectionTotals)> = BTreeMap::new();
    for endpoint in endpoints {
        if let Some(totals) = context.connection_totals(endpoint.gid) {
            let (nodes, _) = processes
                .entry(endpoint.gid.prefix)
                .or_insert((BTreeSet::new(), totals));
            nodes.insert(node_path(endpoint));
        }
    }
    let joined = |nodes: BTreeSet<String>| nodes.into_iter().collect::<Vec<_>>().join(", ");
    let processes = processes.into_values();
    processes
        .map(|(nodes, totals)| (joined(nodes), totals))
        .collect()
}

fn dropped_by_reason(totals: &ConnectionTotals) -> [(&'static str, u64); 4] {
    [
        ("ring full", totals.ring_full),
        ("pool exhausted", totals.pool_exhausted),
        ("too large", totals.too_large),
        ("connection down", totals.connection_down),
    ]
}

fn connections_json(nodes: &str, totals: &ConnectionTotals) -> Value {
    let dropped =
        dropped_by_reason(totals).map(|(why, count)| (why.replace(' ', "_"), json!(count)));
    json!({
        "nodes": nodes,
        "connections": totals.connections,
        "sent": totals.sent,
        "received": totals.received,
        "lost_by_reliable_subscriptions": totals.samples_lost,
        "dropped": dropped.into_iter().collect::<serde_json::Map<_, _>>(),
    })
}

fn matches(pairs: &[MatchReport]) -> impl Iterator<Item = (&MatchReport, &str)> {
    pairs.iter().filter_map(|pair| {
        pair.outcomes.iter().find_map(|outcome| match outcome {
            MatchOutcome::Matched { path } => Some((pair, path.as_str())),
            MatchOutcome::Incompatible { .. }
            | MatchOutcome::Denied { .. }
            | MatchOutcome::Pending { .. } => None,
        })
    })
}

fn match_json(pair: &MatchReport, path: &str) -> Value {
    json!({
        "publisher": gid_text(&pair.publisher),
        "subscription": gid_text(&pair.subscription),
        "path": path,
    })
}

/// An endpoint in rclpy's format. With `details`, other policies follow if they
/// differ from the default.
fn endpoint_text(endpoint: &EndpointInfo, kind: &str, details: bool) -> String {
    let mut lines = vec![
        format!(
            "Node name: {}",
            endpoint
                .node_name
                .as_deref()
                .unwrap_or("_NODE_NAME_UNKNOWN_")
        ),
        format!(
            "Node namespace: {}",
            endpoint
                .node_namespace
                .as_deref()
                .unwrap_or("_NODE_NAMESPACE_UNKNOWN_")
        ),
        format!("Topic type: {}", endpoint.topic_type),
        format!(
            "Topic type hash: {}",
            hash_text(endpoint).unwrap_or("INVALID".into())
        ),
        format!("Endpoint type: {kind}"),
        format!("GID: {}", gid_text(endpoint)),
        "QoS profile:".into(),
    ];
    lines.extend(
        qos_lines(endpoint)
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    if details {
        lines.extend(unusual_policies(&endpoint.qos));
        if let Some(filter) = &endpoint.content_filter {
            lines.push(format!("Content filter: {filter}"));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| escape_line(line)).collect();
    lines.join("\n")
}

/// The QoS policies that rclpy prints, in its order.
pub fn qos_lines(endpoint: &EndpointInfo) -> [String; 7] {
    let qos = &endpoint.qos;
    [
        format!("Reliability: {}", qos.reliability),
        format!("History (Depth): {}", history_text(endpoint)),
        format!("Durability: {}", qos.durability),
        format!("Lifespan: {}", duration_text(qos.lifespan)),
        format!("Deadline: {}", duration_text(qos.deadline)),
        format!("Liveliness: {}", qos.liveliness),
        format!(
            "Liveliness lease duration: {}",
            duration_text(qos.liveliness_lease)
        ),
    ]
}

fn unusual_policies(qos: &QosProfile) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let mut lines = Vec::new();
    let mut add = |unusual: bool, name: &str, value: String| {
        if unusual {
            lines.push(format!("  {name}: {value}"));
        }
    };
    let partition = qos.partition.join(", ");
    add(!qos.partition.is_empty(), "Partition", partition);
    add(
        qos.ownership == Ownership::Exclusive,
        "Ownership",
        format!("EXCLUSIVE, strength {}", qos.ownership_strength),
    );
    add(
        qos.destination_order == DestinationOrder::BySource,
        "Destination order",
        "BY_SOURCE".into(),
    );
    add(
        !qos.time_based_filter.is_zero(),
        "Time based filter",
        duration_text(Some(qos.time_based_filter)),
    );
    add(
        !qos.latency_budget.is_zero(),
        "Latency budget",
        duration_text(Some(qos.latency_budget)),
    );
    add(
        qos.representation == Some(Representation::Xcdr2),
        "Data representation",
        "XCDR2".into(),
    );
    let service = qos.durability_service.unwrap_or_default();
    add(
        service != DurabilityService::default(),
        "Durability service",
        service_text(&service),
    );
    for (name, data) in [
        ("User data", &qos.user_data),
        ("Topic data", &qos.topic_data),
        ("Group data", &qos.group_data),
    ] {
        add(!data.is_empty(), name, text(data));
    }
    lines
}

/// The settings of a durability service; limits only if they are set.
fn service_text(service: &DurabilityService) -> String {
    let mut text = match service.history {
        History::KeepLast(depth) => format!("KEEP_LAST ({depth})"),
        History::KeepAll => "KEEP_ALL".into(),
    };
    let limits = &service.resource_limits;
    for (name, limit) in [
        ("max samples", limits.max_samples),
        ("max instances", limits.max_instances),
        ("max samples per instance", limits.max_samples_per_instance),
    ] {
        if let Some(limit) = limit {
            text += &format!(", {name} {limit}");
        }
    }
    let delay = service.cleanup_delay;
    if delay != Some(Duration::ZERO) {
        text += &format!(", cleanup delay {}", duration_text(delay));
    }
    text
}

fn service_json(service: &DurabilityService) -> Value {
    let delay = service.cleanup_delay;
    json!({
        "history": match service.history {
            History::KeepLast(_) => "KEEP_LAST",
            History::KeepAll => "KEEP_ALL",
        },
        "depth": match service.history {
            History::KeepLast(depth) => Some(depth),
            History::KeepAll => None,
        },
        "max_samples": service.resource_limits.max_samples,
        "max_instances": service.resource_limits.max_instances,
        "max_samples_per_instance": service.resource_limits.max_samples_per_instance,
        "cleanup_delay_ns": delay.map(|time| u64::try_from(time.as_nanos()).ok()),
    })
}

/// An endpoint as JSON. Durations are in nanoseconds, and `null` is infinite.
pub fn endpoint_json(endpoint: &EndpointInfo) -> Value {
    json!({
        "node_name": endpoint.node_name,
        "node_namespace": endpoint.node_namespace,
        "topic_type": endpoint.topic_type,
        "type_hash": hash_text(endpoint),
        "gid": gid_text(endpoint),
        "vendor": vendor_text(endpoint),
        "qos": qos_json(endpoint),
        "content_filter": endpoint.content_filter.as_ref().map(|filter| json!({
            "class": filter.class,
            "expression": filter.expression,
            "parameters": filter.parameters,
        })),
    })
}

/// The QoS policies of an endpoint as JSON.
pub fn qos_json(endpoint: &EndpointInfo) -> Value {
    let qos = &endpoint.qos;
    let nanoseconds = |time: Option<Duration>| time.map(|time| u64::try_from(time.as_nanos()).ok());
    json!({
        "reliability": qos.reliability.to_string(),
        "durability": qos.durability.to_string(),
        "history": history_text(endpoint),
        "lifespan_ns": nanoseconds(qos.lifespan),
        "deadline_ns": nanoseconds(qos.deadline),
        "liveliness": qos.liveliness.to_string(),
        "liveliness_lease_ns": nanoseconds(qos.liveliness_lease),
        "partition": qos.partition,
        "ownership": match qos.ownership {
            Ownership::Shared => "SHARED",
            Ownership::Exclusive => "EXCLUSIVE",
        },
        "ownership_strength": qos.ownership_strength,
        "destination_order": match qos.destination_order {
            DestinationOrder::ByReception => "BY_RECEPTION",
            DestinationOrder::BySource => "BY_SOURCE",
        },
        "time_based_filter_ns": nanoseconds(Some(qos.time_based_filter)),
        "xcdr2_only": qos.representation == Some(Representation::Xcdr2),
        "latency_budget_ns": nanoseconds(Some(qos.latency_budget)),
        "durability_service": qos.durability_service.as_ref().map(service_json),
        "user_data": qos.user_data.escape_ascii().to_string(),
        "topic_data": qos.topic_data.escape_ascii().to_string(),
        "group_data": qos.group_data.escape_ascii().to_string(),
    })
}

/// The specification leaves history out of discovery, and many peers do not announce
/// it. So it is unknown for other processes, as with `rmw_fastrtps_cpp`.
fn history_text(endpoint: &EndpointInfo) -> String {
    match endpoint.qos.history {
        _ if !endpoint.local => "UNKNOWN".into(),
        HistoryPolicy::SystemDefault => "UNKNOWN".into(),
        known => known.to_string(),
    }
}

fn duration_text(time: Option<Duration>) -> String {
    match time {
        None | Some(Duration::MAX) => "Infinite".into(),
        Some(time) => format!("{} nanoseconds", time.as_nanos()),
    }
}

fn hash_text(endpoint: &EndpointInfo) -> Option<String> {
    endpoint.type_hash.as_ref().map(ToString::to_string)
}

/// Bytes in hexadecimal, separated by dots.
pub fn gid_text(endpoint: &EndpointInfo) -> String {
    guid_text(endpoint.gid)
}

fn guid_text(guid: Guid) -> String {
    let bytes = guid.to_bytes();
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(".")
}

/// `/ns/node`, or a replacement if no node is announced.
pub fn node_path(endpoint: &EndpointInfo) -> String {
    match (&endpoint.node_namespace, &endpoint.node_name) {
        (Some(namespace), Some(name)) => pteros::names::node_path(namespace, name),
        _ => format!("(a {} endpoint without a node)", vendor_text(endpoint)),
    }
}

fn vendor_text(endpoint: &EndpointInfo) -> String {
    let VendorId([high, low]) = endpoint.vendor;
    match endpoint.vendor.name() {
        Some(name) => name.to_string(),
        None => format!("vendor {high:02x}.{low:02x}"),
    }
}

/// The offered QoS of a topic's publishers.
pub fn offered_qos(graph: &Graph, topic: &str) -> Vec<QosProfile> {
    graph
        .publishers(topic)
        .into_iter()
        .map(|endpoint| endpoint.qos)
        .collect()
}
