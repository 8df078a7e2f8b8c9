//! `pteros param dump`.

use super::nodes::{NodeFlags, parted};
use super::text::{file, json};
use crate::shared::Shared;
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
    pub fn run(self, shared: &Shared) -> Result<()> {
        let nodes = self.nodes.find(shared, Some(&self.node_name))?;
        let said = nodes.ask(|client, patience| {
            let mut names = client.list(&[], 0, patience)?;
            names.sort_unstable();
            if names.is_empty() {
                return Ok(Vec::new());
            }
            let asked: Vec<&str> = names.iter().map(String::as_str).collect();
            let values = client.get(&asked, patience)?;
            let pairs: Vec<(String, ParameterValue)> = names.into_iter().zip(values).collect();
            Ok(pairs)
        });
        let (answers, failures) = parted(said);
        let mut all = Map::new();
        for (node, parameters) in answers {
            if shared.console.json {
                let of_node = parameters
                    .iter()
                    .map(|(name, value)| (name.clone(), json(value)));
                all.insert(node, Value::Object(of_node.collect()));
            } else {
                shared.console.text(&file(&node, &parameters))?;
            }
        }
        if shared.console.json {
            shared.console.json(&all.into())?;
        }
        nodes.verdict(shared, failures)
    }
}
