//! `pteros param set`.

use super::nodes::{NodeFailure, NodeFlags, NodeResponse, PerNode, TargetNodes, split_responses};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::msg::suggest::did_you_mean;
use pteros::parameter::{ParameterClient, ParameterText, SetParameterResult};
use pteros::service::CallError;
use serde_json::{Map, json};
use std::time::Instant;

/// Arguments of `param set`.
#[derive(Debug, Args)]
pub struct Set {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// Name of the parameter
    parameter_name: String,
    /// The value in YAML: 0.5, true, text, [1, 2]; the declared type decides
    #[arg(allow_hyphen_values = true)]
    value: String,
}

impl Set {
    /// Sets the parameter of each node.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let text = ParameterText::lenient(&self.value);
        let texts = [(self.parameter_name.clone(), text)];
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let responses = nodes.call_all(|client, timeout| {
            let until = Instant::now() + timeout;
            let results = client.set_texts(&texts, timeout);
            NodeOutcome::of(client, &self.parameter_name, results, until)
        });
        report(
            cli,
            &nodes,
            responses,
            "Set parameter successful",
            "Setting parameter failed",
        )
    }
}

/// The answer of a node to a change of one parameter.
pub struct NodeOutcome {
    result: SetParameterResult,
    /// Where to find the name of a parameter that the node does not have.
    remedy: String,
}

impl NodeOutcome {
    /// Asks a node that has refused whether it has the parameter, until that time.
    ///
    /// # Errors
    /// That of the call.
    pub fn of(
        client: &ParameterClient,
        name: &str,
        results: Result<Vec<SetParameterResult>, CallError>,
        until: Instant,
    ) -> Result<Self, CallError> {
        let result = results?.into_iter().next().unwrap_or(Ok(()));
        let mut remedy = String::new();
        if result.is_err()
            && let left = until.saturating_duration_since(Instant::now())
            && let Ok(known) = client.list(&[], 0, left)
        {
            let node = client.remote();
            remedy = if known.iter().any(|known| known == name) {
                format!("; its description: pteros param describe {node} {name}")
            } else {
                let similar = did_you_mean(name, known.iter().map(String::as_str));
                format!("{similar} Its parameters: pteros param list {node}")
            };
        }
        Ok(Self { result, remedy })
    }
}

/// Prints for each node whether the parameter was set, as the text `done` or
/// `failed`.
pub fn report(
    cli: &CliContext,
    nodes: &TargetNodes,
    responses: Vec<NodeResponse<NodeOutcome>>,
    done: &str,
    failed: &str,
) -> Result<()> {
    let (answers, mut failures) = split_responses(responses);
    let mut all = Map::new();
    for PerNode {
        node,
        value: NodeOutcome {
            result: outcome,
            remedy,
        },
    } in answers
    {
        let reason = outcome.as_ref().err().cloned().unwrap_or_default();
        if cli.console.json {
            let row = json!({ "successful": outcome.is_ok(), "reason": reason });
            all.insert(node.clone(), row);
        } else if outcome.is_ok() {
            cli.console.row(if nodes.several {
                format!("{node}: {done}")
            } else {
                done.into()
            })?;
        }
        if outcome.is_err() {
            let end = if remedy.is_empty() { "" } else { "." };
            let reason = reason.strip_suffix(end).unwrap_or(&reason);
            let error = format!("{failed}: {reason}{remedy}");
            failures.push(NodeFailure { node, error });
        }
    }
    if cli.console.json {
        cli.console.json(&all.into())?;
    }
    nodes.report_failures(cli, failures)
}
