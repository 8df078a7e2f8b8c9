//! `pteros param get`.

use super::nodes::{NodeFlags, PerNode, split_responses};
use super::value_text::{ros2_label, to_json, to_python, type_name};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::log::escape_row;
use pteros::parameter::ParameterValue;
use serde_json::{Map, json};

/// Arguments of `param get`.
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Print only the value, without its type
    #[arg(long)]
    hide_type: bool,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// Name of the parameter
    parameter_name: String,
}

impl Get {
    /// Prints the value of each node.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let name = [self.parameter_name.as_str()];
        let responses = nodes.call_all(|client, timeout| client.get(&name, timeout));
        let (answers, failures) = split_responses(responses);
        let mut all = Map::new();
        for PerNode {
            node,
            value: values,
        } in answers
        {
            let value = values.into_iter().next().unwrap_or_default();
            if cli.console.json {
                let type_of = type_name(value.parameter_type());
                all.insert(node, json!({ "type": type_of, "value": to_json(&value) }));
                continue;
            }
            let shown = match (self.hide_type, &value) {
                (true, value) => to_python(value),
                (false, ParameterValue::NotSet) => ros2_label(&value).into(),
                (false, value) => format!("{} {}", ros2_label(value), to_python(value)),
            };
            cli.console.line(if nodes.several {
                format!("{}: {shown}", escape_row(&node))
            } else {
                shown
            })?;
        }
        if cli.console.json {
            cli.console.json(&all.into())?;
        }
        nodes.report_failures(cli, failures)
    }
}
