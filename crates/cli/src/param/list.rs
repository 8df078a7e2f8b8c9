//! `pteros param list`.

use super::nodes::{NodeFailure, NodeFlags, PerNode, split_responses};
use super::value_text::type_name;
use crate::cli_context::CliContext;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros::log::escape_line;
use pteros::parameter::ParameterType;
use pteros_pattern::{Extent, Pattern};
use serde_json::{Map, Value, json};

/// Arguments of `param list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Only parameters whose name starts with a match of the regular expression
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// Only parameters with these prefixes: of this name, or in this group
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    param_prefixes: Vec<String>,
    /// Show the types too
    #[arg(long)]
    param_type: bool,
    /// Name of the node, or a pattern (/robot/*); all nodes if left out
    node_name: Option<String>,
}

impl List {
    /// Prints the parameter names of each node, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let filter = self.filter.as_deref().map(expression).transpose()?;
        let nodes = self.nodes.find(cli, self.node_name.as_deref())?;
        let prefixes: Vec<&str> = self.param_prefixes.iter().map(String::as_str).collect();
        let responses = nodes.call_all(|client, timeout| {
            let mut names = client.list(&prefixes, 0, timeout)?;
            names.sort_unstable();
            if let Some(filter) = &filter {
                names.retain(|name| filter.is_match(name));
            }
            let types = match self.param_type {
                true if !names.is_empty() => {
                    let requested: Vec<&str> = names.iter().map(String::as_str).collect();
                    let described = client.describe(&requested, timeout)?;
                    described
                        .iter()
                        .map(|descriptor| descriptor.r#type)
                        .collect()
                }
                _ => Vec::new(),
            };
            Ok((names, types))
        });
        let (answers, failures) = split_responses(responses);
        let word = |number: &u8| type_name(ParameterType::from_number(*number).unwrap_or_default());
        if cli.console.json {
            let mut all = Map::new();
            for PerNode {
                node,
                value: (names, types),
            } in answers
            {
                let row = |(at, name): (usize, &String)| match types.get(at) {
                    Some(number) => json!({ "name": name, "type": word(number) }),
                    None => json!(name),
                };
                let rows: Vec<Value> = names.iter().enumerate().map(row).collect();
                all.insert(node, rows.into());
            }
            cli.console.json(&all.into())?;
        } else {
            for PerNode {
                node,
                value: (names, types),
            } in answers
            {
                if nodes.several && !names.is_empty() {
                    cli.console.line(escape_line(&format!("{node}:")))?;
                }
                for (at, name) in names.iter().enumerate() {
                    let text = match types.get(at) {
                        Some(number) => format!("  {name} (type: {})", word(number)),
                        None => format!("  {name}"),
                    };
                    cli.console.line(escape_line(&text))?;
                }
            }
        }
        // As in ros2, a node without parameter services is no failure if there are
        // several nodes.
        if nodes.several {
            for NodeFailure { node, error } in failures {
                cli.console.note(format!("{node}: {error}"));
            }
            return Ok(());
        }
        nodes.report_failures(cli, failures)
    }
}

fn expression(text: &str) -> Result<Pattern> {
    Pattern::new(text, Extent::Start).map_err(|reason| {
        anyhow!("--filter {text:?} is not a regular expression: {reason}; for example 'joint_.*'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_matches_the_start_and_has_a_limit() {
        let filter = expression("joint_.*|use").unwrap();
        assert!(filter.is_match("use_sim_time") && !filter.is_match("my_joint_1"));
        for (wrong, reason) in [("a(", "unclosed group"), ("(a{1000}){1000}", "more than")] {
            let error = expression(wrong).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
