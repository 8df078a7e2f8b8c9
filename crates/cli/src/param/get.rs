//! `pteros param get`.

use super::nodes::{NodeFlags, parted};
use super::text::{json, label, python, type_word};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::parameter::ParameterValue;
use serde_json::{Map, json};

/// Arguments of `param get`.
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Only the value, without the words before it
    #[arg(long)]
    hide_type: bool,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// Name of the parameter
    parameter_name: String,
}

impl Get {
    /// Prints the value, of each node.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let nodes = self.nodes.find(shared, Some(&self.node_name))?;
        let name = [self.parameter_name.as_str()];
        let said = nodes.ask(|client, patience| client.get(&name, patience));
        let (answers, failures) = parted(said);
        let mut all = Map::new();
        for (node, values) in answers {
            let value = values.into_iter().next().unwrap_or_default();
            if shared.console.json {
                let type_of = type_word(value.parameter_type());
                all.insert(node, json!({ "type": type_of, "value": json(&value) }));
                continue;
            }
            let shown = match (self.hide_type, &value) {
                (true, value) => python(value),
                (false, ParameterValue::NotSet) => label(&value).into(),
                (false, value) => format!("{} {}", label(value), python(value)),
            };
            shared.console.line(match nodes.several {
                true => format!("{node}: {shown}"),
                false => shown,
            })?;
        }
        if shared.console.json {
            shared.console.json(&all.into())?;
        }
        nodes.verdict(shared, failures)
    }
}
