//! `pteros param dump`.

use super::nodes::{NodeFlags, PerNode, split_responses};
use super::value_text::{parameter_file_text, to_json};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::parameter::ParameterValue;
use serde_json::{Map, Value};

/// Arguments of `param dump`.
#[derive(Debug, Args)]
pub struct Dump {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
}

impl Dump {
    /// Prints the parameters as a file for `--params-file` and `param load`.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let responses = nodes.call_all(|client, timeout| {
            let mut names = client.list(&[], 0, timeout)?;
            names.sort_unstable();
            if names.is_empty() {
                return Ok(Vec::new());
            }
            let requested: Vec<&str> = names.iter().map(String::as_str).collect();
            let values = client.get(&requested, timeout)?;
            let pairs: Vec<(String, ParameterValue)> = names.into_iter().zip(values).collect();
            Ok(pairs)
        });
        let (answers, failures) = split_responses(responses);
        let mut all = Map::new();
        for PerNode {
            node,
            value: parameters,
        } in answers
        {
            if cli.console.json {
                let of_node = parameters
                    .iter()
                    .map(|(name, value)| (name.clone(), to_json(value)));
                all.insert(node, Value::Object(of_node.collect()));
            } else {
                cli.console.text(&parameter_file_text(&node, &parameters))?;
            }
        }
        if cli.console.json {
            cli.console.json(&all.into())?;
        }
        nodes.report_failures(cli, failures)
    }
}
