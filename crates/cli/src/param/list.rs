//! `pteros param list`.

use super::nodes::{NodeFlags, parted};
use super::text::type_word;
use crate::shared::Shared;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros::parameter::ParameterType;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input};
use serde_json::{Map, Value, json};

/// Arguments of `param list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Only parameters whose name begins with what the regular expression matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// Only parameters with these prefixes: of that name, or in that group
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    param_prefixes: Vec<String>,
    /// Show the types too
    #[arg(long)]
    param_type: bool,
    /// Name of the node, or a pattern (/robot/*); all nodes if left out
    node_name: Option<String>,
}

impl List {
    /// Prints the names, sorted, of each node.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let filter = self.filter.as_deref().map(expression).transpose()?;
        let nodes = self.nodes.find(shared, self.node_name.as_deref())?;
        let prefixes: Vec<&str> = self.param_prefixes.iter().map(String::as_str).collect();
        let said = nodes.ask(|client, patience| {
            let mut names = client.list(&prefixes, 0, patience)?;
            names.sort_unstable();
            if let Some(filter) = &filter {
                names.retain(|name| {
                    let input = Input::new(name).anchored(Anchored::Yes);
                    filter.is_match(&mut filter.create_cache(), input)
                });
            }
            let types = match self.param_type {
                true if !names.is_empty() => {
                    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
                    let described = client.describe(&asked, patience)?;
                    described.iter().map(|told| told.r#type).collect()
                }
                _ => Vec::new(),
            };
            Ok((names, types))
        });
        let (answers, failures) = parted(said);
        let word = |number: &u8| type_word(ParameterType::from_number(*number).unwrap_or_default());
        if shared.console.json {
            let mut all = Map::new();
            for (node, (names, types)) in answers {
                let row = |(at, name): (usize, &String)| match types.get(at) {
                    Some(number) => json!({ "name": name, "type": word(number) }),
                    None => json!(name),
                };
                let rows: Vec<Value> = names.iter().enumerate().map(row).collect();
                all.insert(node, rows.into());
            }
            shared.console.json(&all.into())?;
        } else {
            for (node, (names, types)) in answers {
                if nodes.several && !names.is_empty() {
                    shared.console.line(format!("{node}:"))?;
                }
                for (at, name) in names.iter().enumerate() {
                    shared.console.line(match types.get(at) {
                        Some(number) => format!("  {name} (type: {})", word(number)),
                        None => format!("  {name}"),
                    })?;
                }
            }
        }
        // As in ros2, nodes without parameter services are no failure among others.
        if nodes.several {
            for (node, error) in failures {
                shared.console.remark(format!("{node}: {error}"));
            }
            return Ok(());
        }
        nodes.verdict(shared, failures)
    }
}

fn expression(text: &str) -> Result<PikeVM> {
    PikeVM::new(text).map_err(|error| {
        anyhow!("--filter {text:?} is no regular expression: {error}; for example 'joint_.*'")
    })
}
