//! `pteros param set`.

use super::nodes::{NodeFailure, NodeFlags, NodeResponse, PerNode, TargetNodes, split_responses};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::parameter::{ParameterText, SetParameterResult};
use serde_json::{Map, json};

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
        let texts = [(self.parameter_name, text)];
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let responses = nodes.call_all(|client, timeout| client.set_texts(&texts, timeout));
        report(
            cli,
            &nodes,
            responses,
            "Set parameter successful",
            "Setting parameter failed",
        )
    }
}

/// Prints for each node whether the parameter was set, as the text `done` or
/// `failed`.
pub fn report(
    cli: &CliContext,
    nodes: &TargetNodes,
    responses: Vec<NodeResponse<Vec<SetParameterResult>>>,
    done: &str,
    failed: &str,
) -> Result<()> {
    let (answers, mut failures) = split_responses(responses);
    let mut all = Map::new();
    for PerNode {
        node,
        value: outcomes,
    } in answers
    {
        let outcome = outcomes.into_iter().next().unwrap_or(Ok(()));
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
            let remedy = if reason.contains("not declared") {
                format!("; its parameters: pteros param list {node}")
            } else {
                String::new()
            };
            let error = format!("{failed}: {reason}{remedy}");
            failures.push(NodeFailure { node, error });
        }
    }
    if cli.console.json {
        cli.console.json(&all.into())?;
    }
    nodes.report_failures(cli, failures)
}
