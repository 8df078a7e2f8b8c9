//! `pteros param describe`.

use super::nodes::{NodeFlags, PerNode, split_responses};
use super::value_text::type_name;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::interfaces::rcl_interfaces::msg::ParameterDescriptor;
use pteros::log::escape_line;
use pteros::parameter::{ParameterType, ParameterValue};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Arguments of `param describe`.
#[derive(Debug, Args)]
pub struct Describe {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// Names of parameters
    #[arg(required = true)]
    parameter_names: Vec<String>,
}

impl Describe {
    /// Prints the descriptors of each node's parameters.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let names: Vec<&str> = self.parameter_names.iter().map(String::as_str).collect();
        let responses = nodes.call_all(|client, timeout| client.describe(&names, timeout));
        let (answers, failures) = split_responses(responses);
        let mut all = Map::new();
        for PerNode {
            node,
            value: descriptors,
        } in answers
        {
            if cli.console.json {
                let rows: Vec<Value> = descriptors.iter().map(row).collect();
                all.insert(node, rows.into());
                continue;
            }
            if nodes.several {
                cli.console.line(escape_line(&format!("{node}:")))?;
            }
            for descriptor in &descriptors {
                cli.console.text(&text(descriptor))?;
            }
        }
        if cli.console.json {
            cli.console.json(&all.into())?;
        }
        nodes.report_failures(cli, failures)
    }
}

fn word(descriptor: &ParameterDescriptor) -> &'static str {
    type_name(ParameterType::from_number(descriptor.r#type).unwrap_or_default())
}

fn row(descriptor: &ParameterDescriptor) -> Value {
    let floats = descriptor.floating_point_range.first();
    let floats = floats.map(|range| json!([range.from_value, range.to_value, range.step]));
    let integers = descriptor.integer_range.first();
    let integers = integers.map(|range| json!([range.from_value, range.to_value, range.step]));
    json!({
        "name": descriptor.name,
        "type": word(descriptor),
        "description": descriptor.description,
        "additional_constraints": descriptor.additional_constraints,
        "read_only": descriptor.read_only,
        "dynamic_typing": descriptor.dynamic_typing,
        "range": floats.or(integers),
    })
}

/// The descriptor in ros2's format.
fn text(descriptor: &ParameterDescriptor) -> String {
    let mut out = format!(
        "Parameter name: {}\n  Type: {}\n",
        escape_line(&descriptor.name),
        word(descriptor)
    );
    if !descriptor.description.is_empty() {
        let _ = writeln!(
            out,
            "  Description: {}",
            escape_line(&descriptor.description)
        );
    }
    out.push_str("  Constraints:\n");
    if descriptor.read_only {
        out.push_str("    Read only: true\n");
    }
    let double = |value: f64| super::value_text::to_python(&ParameterValue::Double(value));
    let range = match (
        descriptor.floating_point_range.first(),
        descriptor.integer_range.first(),
    ) {
        (Some(range), _) => Some((
            double(range.from_value),
            double(range.to_value),
            (range.step != 0.0).then(|| double(range.step)),
        )),
        (None, Some(range)) => Some((
            range.from_value.to_string(),
            range.to_value.to_string(),
            (range.step != 0).then(|| range.step.to_string()),
        )),
        (None, None) => None,
    };
    if let Some((from, to, step)) = range {
        let _ = writeln!(out, "    Min value: {from}\n    Max value: {to}");
        if let Some(step) = step {
            let _ = writeln!(out, "    Step: {step}");
        }
    }
    if !descriptor.additional_constraints.is_empty() {
        let words = escape_line(&descriptor.additional_constraints);
        let _ = writeln!(out, "    Additional constraints: {words}");
    }
    out
}
