//! `pteros topic why`: endpoint matching of each publisher and subscription, with
//! the delivery path of a match or the reason of a mismatch.

use super::info::{endpoint_json, node_path};
use super::lookup::find_topic;
use crate::cli_context::CliContext;
use crate::exit_errors::EndpointsUnmatched;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::Graph;
use pteros::graph::{EndpointInfo, EndpointKind, MatchOutcome, MatchReport};
use pteros::log::escape_line;
use serde_json::{Value, json};

/// Arguments of `topic why`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 0 if every pair matches, 1 if one does not or there is no pair.")]
pub struct Why {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

impl Why {
    /// Prints the match outcome of each pair.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let name = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.discovery);
        let topic = find_topic(&session, &graph, &name)?;
        let publisher_count = graph.publishers(&name).len();
        let subscription_count = graph.subscriptions(&name).len();
        let pairs = graph.match_reports(&name);
        let not_carried = not_carried(&graph, &name);
        let silent = session.silent_participants();
        let silent_servers = session.silent_discovery_servers();
        if cli.console.json {
            cli.console.json(&json!({
                "name": topic.name,
                "types": topic.types,
                "publisher_count": publisher_count,
                "subscription_count": subscription_count,
                "pairs": pairs.iter().map(pair_json).collect::<Vec<_>>(),
                "not_carried": not_carried.iter().map(NotCarried::json).collect::<Vec<_>>(),
                "silent_discovery_servers": silent_servers.iter().map(|server| &server.address).collect::<Vec<_>>(),
                "silent_participants": silent.iter().map(ToString::to_string).collect::<Vec<_>>(),
            }))?;
        } else {
            let mut text = format!(
                "{name}: {}, {}\n",
                counted(publisher_count, "publisher"),
                counted(subscription_count, "subscription")
            );
            for pair in &pairs {
                text += &pair_text(pair);
            }
            text.extend(not_carried.iter().map(NotCarried::line));
            text += missing_side_hint(publisher_count, subscription_count);
            for silent in &silent {
                text += &format!(
                    "  {silent} announces itself and never answers; its endpoints are unknown\n"
                );
            }
            for server in &silent_servers {
                text += &format!("  {server}: nothing is discovered by it\n");
            }
            cli.console.styled(&text)?;
        }
        let all_match = pairs
            .iter()
            .flat_map(|pair| &pair.outcomes)
            .all(|outcome| matches!(outcome, MatchOutcome::Matched { .. }));
        if pairs.is_empty() || !all_match {
            return Err(EndpointsUnmatched.into());
        }
        Ok(())
    }
}

/// An endpoint that a transport of this context cannot carry.
struct NotCarried {
    endpoint: EndpointInfo,
    transport: String,
    reason: &'static str,
}

fn not_carried(graph: &Graph, name: &str) -> Vec<NotCarried> {
    let all = graph.publishers(name).into_iter();
    let all = all.chain(graph.subscriptions(name));
    let found = all.flat_map(|endpoint| {
        let transports = graph.transports_without(&endpoint).into_iter();
        transports.map(move |(transport, reason)| NotCarried {
            endpoint: endpoint.clone(),
            transport,
            reason,
        })
    });
    found.collect()
}

impl NotCarried {
    fn kind(&self) -> &'static str {
        match self.endpoint.kind {
            EndpointKind::Publisher => "publisher",
            EndpointKind::Subscription => "subscription",
        }
    }

    fn line(&self) -> String {
        let Self {
            transport, reason, ..
        } = self;
        let (node, kind) = (node_path(&self.endpoint), self.kind());
        let node = escape_line(&node);
        format!(
            "  {node}: {transport} does not carry its {kind}: {reason}; hosts that only {transport} joins do not see it\n"
        )
    }

    fn json(&self) -> Value {
        json!({
            "endpoint": endpoint_json(&self.endpoint),
            "kind": self.kind(),
            "wire": self.transport,
            "reason": self.reason,
        })
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The hint for a topic without publishers or without subscriptions.
fn missing_side_hint(publisher_count: usize, subscription_count: usize) -> &'static str {
    match (publisher_count, subscription_count) {
        (0, _) => {
            "  no publisher: start one, continue it if it is stopped, or check its spelling, namespace and domain\n"
        }
        (_, 0) => {
            "  no subscription: start one, continue it if it is stopped, or check its spelling, namespace and domain\n"
        }
        _ => "",
    }
}

fn pair_text(pair: &MatchReport) -> String {
    let (from, to) = (node_path(&pair.publisher), node_path(&pair.subscription));
    let outcomes = pair.outcomes.iter().map(outcome_text);
    let dropped = match pair.undecodable_count() {
        0 => String::new(),
        count => format!(
            "      \x1b[31mdropped:\x1b[0m   {count} messages, which do not decode as the \
             subscription's type; its log has the reason\n"
        ),
    };
    let mismatch = pair.service_mismatch().map_or_else(String::new, |reason| {
        format!("      \x1b[33mservices:\x1b[0m  {}\n", escape_line(&reason))
    });
    format!(
        "  {} -> {}: {}{mismatch}{dropped}",
        escape_line(&from),
        escape_line(&to),
        outcomes.collect::<String>()
    )
}

/// The texts in it may have names and values of peers.
fn outcome_text(outcome: &MatchOutcome) -> String {
    let shown = |text: &str| escape_line(text).into_owned();
    match outcome {
        MatchOutcome::Matched { path } => {
            format!("\x1b[32mmatch\x1b[0m, by {}\n", shown(path))
        }
        MatchOutcome::Incompatible {
            policy,
            offered,
            requested,
            hint: advice,
        } => format!(
            "\x1b[31mno match\x1b[0m, because of {}\n      offered:   {}\n      requested: {}\n      fix:       {}\n",
            shown(&policy.to_string()),
            shown(&offered.to_string()),
            shown(&requested.to_string()),
            shown(&advice.to_string()),
        ),
        MatchOutcome::Denied { reason } => {
            format!(
                "\x1b[31mno match\x1b[0m, denied by access control\n      rule:      {}\n",
                shown(reason)
            )
        }
        MatchOutcome::Pending { reason } => {
            format!("\x1b[33mnot yet\x1b[0m, {}\n", shown(reason))
        }
    }
}

fn pair_json(pair: &MatchReport) -> Value {
    json!({
        "publisher": endpoint_json(&pair.publisher),
        "subscription": endpoint_json(&pair.subscription),
        "outcomes": pair.outcomes.iter().map(outcome_json).collect::<Vec<_>>(),
        "undecodable": pair.undecodable_count(),
        "service_mismatch": pair.service_mismatch(),
    })
}

fn outcome_json(outcome: &MatchOutcome) -> Value {
    match outcome {
        MatchOutcome::Matched { path } => json!({ "outcome": "match", "path": path }),
        MatchOutcome::Incompatible {
            policy,
            offered,
            requested,
            hint: advice,
        } => json!({
            "outcome": "no match", "policy": policy, "offered": offered,
            "requested": requested, "advice": advice,
        }),
        MatchOutcome::Denied { reason } => json!({ "outcome": "denied", "reason": reason }),
        MatchOutcome::Pending { reason } => json!({ "outcome": "not yet", "reason": reason }),
    }
}
