//! `pteros param load`.

use super::nodes::{NodeFailure, NodeFlags, PerNode, split_responses};
use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros::parameter::{ParameterFile, TypingRule};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Arguments of `param load`.
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Ignore the file's entries for nodes with `*` and `**`
    #[arg(long)]
    no_use_wildcard: bool,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// The parameter file
    parameter_file: PathBuf,
}

impl Load {
    /// Sets the file's parameters of each node, one by one.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let file = ParameterFile::read_by(TypingRule::Yaml11, &self.parameter_file)?;
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let wildcards = !self.no_use_wildcard;
        for node in &nodes.names {
            if !nodes.several && file.parameters_of(node, wildcards).is_empty() {
                bail!(
                    "{} has no parameters of node {node}; add an entry for it, or /**: for every node",
                    self.parameter_file.display()
                );
            }
        }
        let responses = nodes.call_all(|client, timeout| client.load(&file, wildcards, timeout));
        let (answers, mut failures) = split_responses(responses);
        let mut all = Map::new();
        for PerNode {
            node,
            value: outcomes,
        } in answers
        {
            let mut rows = Vec::new();
            for (name, outcome) in outcomes {
                let reason = outcome.as_ref().err().cloned().unwrap_or_default();
                let successful = outcome.is_ok();
                rows.push(json!({ "name": name, "successful": successful, "reason": reason }));
                let whose = if nodes.several {
                    format!("{node}: ")
                } else {
                    String::new()
                };
                match outcome {
                    Ok(()) if cli.console.json => {}
                    Ok(()) => {
                        let text = format!("{whose}Set parameter {name} successful");
                        cli.console.row(text)?;
                    }
                    Err(reason) => {
                        let text = format!("Set parameter {name} failed: {reason}");
                        failures.push(NodeFailure {
                            node: node.clone(),
                            error: text,
                        });
                    }
                }
            }
            all.insert(node, Value::from(rows));
        }
        if cli.console.json {
            cli.console.json(&all.into())?;
        }
        match failures.len() {
            0 | 1 => nodes.report_failures(cli, failures),
            count => {
                for NodeFailure { node, error } in failures {
                    cli.console.note(format!("{node}: {error}"));
                }
                bail!("{count} parameters were not set")
            }
        }
    }
}
