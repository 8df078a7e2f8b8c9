//! Statistics for the page (`pteros.stats`): rates, losses, paths and mismatches by topic,
//! once a second, for viewers that asked with `pteros.hello`.

use std::collections::BTreeMap;
use std::time::Instant;

use pteros::graph::{EndpointInfo, MatchOutcome, MatchReport};
use serde_json::{Value, json};

use crate::client::Client;
use crate::feed::FeedCounts;
use crate::graph_snapshot::{GraphSnapshot, TopicSnapshot, node_name};
use crate::protocol;
use crate::server::Server;

/// Mismatches that are reported of one topic.
const MISMATCHES_MAX: usize = 16;

/// The counts behind the last report.
#[derive(Default)]
pub struct Statistics {
    revision: Option<u64>,
    /// Mismatches by topic, at that revision of the graph.
    mismatches: BTreeMap<String, Vec<Value>>,
    counts: BTreeMap<u32, FeedCounts>,
    counted_at: Option<Instant>,
}

/// Rates and losses of a topic since the last report.
#[derive(Default)]
struct Flow {
    rate: f64,
    bytes_per_second: f64,
    lost: u64,
    paths: Vec<&'static str>,
}

impl Statistics {
    /// Sends a report to the viewers that want it, if there are any.
    pub fn report(&mut self, server: &Server, revision: u64) {
        let clients = server.with_viewers(|viewers| {
            let clients = viewers.clients.values();
            let wanting = clients.filter(|client| Client::wants(&client.wants_statistics));
            wanting.cloned().collect::<Vec<_>>()
        });
        if clients.is_empty() {
            *self = Self::default();
            return;
        }
        let snapshot = server.snapshot();
        if self.revision != Some(revision) {
            self.revision = Some(revision);
            self.mismatches = mismatches(server, &snapshot);
        }
        let flows = self.flows(server);
        let topics = snapshot.topics.iter();
        let topics: Vec<Value> = topics
            .map(|(name, topic)| self.topic_value(name, topic, flows.get(name)))
            .collect();
        let connected = server.with_viewers(|viewers| viewers.clients.len());
        let mut report = json!({ "op": "pteros.stats", "topics": topics, "clients": connected });
        for client in clients {
            let skipped = client.outbox.skipped().into_iter();
            let skipped = skipped.map(|s| json!({ "channelId": s.channel, "count": s.count }));
            report["skipped"] = skipped.collect();
            client.outbox.send(protocol::text(&report));
        }
    }

    fn topic_value(&self, name: &str, topic: &TopicSnapshot, flow: Option<&Flow>) -> Value {
        let endpoints =
            |all: &[EndpointInfo]| -> Value { all.iter().map(endpoint_value).collect() };
        json!({
            "name": name,
            "types": topic.types,
            "publishers": endpoints(&topic.publishers),
            "subscribers": endpoints(&topic.subscribers),
            "rate": flow.map(|flow| flow.rate),
            "bytesPerSecond": flow.map(|flow| flow.bytes_per_second),
            "lost": flow.map(|flow| flow.lost),
            "paths": flow.map(|flow| flow.paths.clone()).unwrap_or_default(),
            "mismatches": self.mismatches.get(name).cloned().unwrap_or_default(),
        })
    }

    /// Flows of topics that some viewer subscribes to. Several feeds of a channel get the
    /// same messages, so that the first one counts.
    fn flows(&mut self, server: &Server) -> BTreeMap<String, Flow> {
        let now = Instant::now();
        let since = self.counted_at.replace(now);
        let seconds = since.map_or(0.0, |since| {
            now.saturating_duration_since(since).as_secs_f64()
        });
        let per_second = |count: u64| {
            #[allow(clippy::cast_precision_loss, reason = "a rate")]
            let count = count as f64;
            if seconds > 0.0 { count / seconds } else { 0.0 }
        };
        let channels =
            server.with_channels(|channels, _| channels.all().cloned().collect::<Vec<_>>());
        let mut counts = BTreeMap::new();
        let mut flows: BTreeMap<String, Flow> = BTreeMap::new();
        for channel in channels {
            let Some(feed) = channel.feeds().into_iter().next() else {
                continue;
            };
            let now = feed.counts();
            let before = self.counts.get(&channel.id).copied().unwrap_or_default();
            // Less than before: another feed.
            let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
            let flow = flows.entry(channel.topic.clone()).or_default();
            flow.rate += per_second(grown(now.messages, before.messages));
            flow.bytes_per_second += per_second(grown(now.bytes, before.bytes));
            flow.lost += now.lost;
            flow.paths.extend(feed.take_paths());
            counts.insert(channel.id, now);
        }
        self.counts = counts;
        flows
    }
}

fn endpoint_value(endpoint: &EndpointInfo) -> Value {
    json!({
        "node": node_name(endpoint),
        "reliability": endpoint.qos.reliability.to_string(),
        "durability": endpoint.qos.durability.to_string(),
    })
}

/// The pairs that do not match, by topic, without those of this server.
fn mismatches(server: &Server, snapshot: &GraphSnapshot) -> BTreeMap<String, Vec<Value>> {
    let own = Some(server.node.fully_qualified_name());
    let both = snapshot.topics.iter();
    let both = both.filter(|(_, t)| !t.publishers.is_empty() && !t.subscribers.is_empty());
    both.filter_map(|(name, _)| {
        let pairs = server.graph.match_reports(name).into_iter();
        let pairs = pairs.filter(|pair| {
            node_name(&pair.publisher) != own && node_name(&pair.subscription) != own
        });
        let rows: Vec<Value> = pairs
            .flat_map(|pair| rows(&pair))
            .take(MISMATCHES_MAX)
            .collect();
        (!rows.is_empty()).then(|| (name.clone(), rows))
    })
    .collect()
}

fn rows(pair: &MatchReport) -> Vec<Value> {
    let row = |policy: &str, offered: Option<&str>, requested: Option<&str>, fix: &str| {
        json!({
            "publisher": node_name(&pair.publisher),
            "subscriber": node_name(&pair.subscription),
            "policy": policy,
            "offered": offered,
            "requested": requested,
            "fix": fix,
        })
    };
    let outcomes = pair.outcomes.iter();
    outcomes
        .filter_map(|outcome| match outcome {
            MatchOutcome::Incompatible {
                policy,
                offered,
                requested,
                hint,
            } => Some(row(policy, Some(offered), Some(requested), hint)),
            MatchOutcome::Denied { reason } => Some(row("access control", None, None, reason)),
            MatchOutcome::Matched { .. } | MatchOutcome::Pending { .. } => None,
        })
        .collect()
}
