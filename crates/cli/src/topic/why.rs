//! `pteros topic why`: for each publisher and subscription whether they match,
//! by which path, and if not, what stands between them.

use super::info::{endpoint_json, node_path};
use super::known::known_topic;
use crate::outcome::Unmatched;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::{PairReport, Verdict};
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
    /// Prints a verdict per pair.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.discovery);
        let topic = known_topic(&session, &graph, &name)?;
        let publisher_count = graph.publishers(&name).len();
        let subscription_count = graph.subscriptions(&name).len();
        let pairs = graph.why(&name);
        if shared.console.json {
            shared.console.json(&json!({
                "name": topic.name,
                "types": topic.types,
                "publisher_count": publisher_count,
                "subscription_count": subscription_count,
                "pairs": pairs.iter().map(pair_json).collect::<Vec<_>>(),
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
            text += one_sided(publisher_count, subscription_count);
            shared.console.text(&text)?;
        }
        let all_match = pairs
            .iter()
            .flat_map(|pair| &pair.verdicts)
            .all(|verdict| matches!(verdict, Verdict::Matched { .. }));
        if pairs.is_empty() || !all_match {
            return Err(Unmatched.into());
        }
        Ok(())
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What a topic with one side only lacks.
fn one_sided(publisher_count: usize, subscription_count: usize) -> &'static str {
    match (publisher_count, subscription_count) {
        (0, _) => {
            "  nobody publishes it: start a publisher, or check its spelling, namespace and domain\n"
        }
        (_, 0) => {
            "  nobody subscribes to it: start a subscription, or check its spelling, namespace and domain\n"
        }
        _ => "",
    }
}

fn pair_text(pair: &PairReport) -> String {
    let (from, to) = (node_path(&pair.publisher), node_path(&pair.subscription));
    let verdicts = pair.verdicts.iter().map(verdict_text);
    format!("  {from} -> {to}: {}", verdicts.collect::<String>())
}

fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Matched { path } => format!("\x1b[32mmatch\x1b[0m, by {path}\n"),
        Verdict::Blocked {
            policy,
            offered,
            requested,
            advice,
        } => format!(
            "\x1b[31mno match\x1b[0m, because of {policy}\n      offered:   {offered}\n      requested: {requested}\n      way out:   {advice}\n"
        ),
        Verdict::Denied { reason } => {
            format!(
                "\x1b[31mno match\x1b[0m, since security does not allow it\n      rule:      {reason}\n"
            )
        }
        Verdict::Pending { reason } => format!("\x1b[33mnot yet\x1b[0m, {reason}\n"),
    }
}

fn pair_json(pair: &PairReport) -> Value {
    json!({
        "publisher": endpoint_json(&pair.publisher),
        "subscription": endpoint_json(&pair.subscription),
        "verdicts": pair.verdicts.iter().map(verdict_json).collect::<Vec<_>>(),
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Matched { path } => json!({ "verdict": "match", "path": path }),
        Verdict::Blocked {
            policy,
            offered,
            requested,
            advice,
        } => json!({
            "verdict": "no match", "policy": policy, "offered": offered,
            "requested": requested, "advice": advice,
        }),
        Verdict::Denied { reason } => json!({ "verdict": "denied", "reason": reason }),
        Verdict::Pending { reason } => json!({ "verdict": "not yet", "reason": reason }),
    }
}
