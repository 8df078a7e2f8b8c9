//! `pteros param set`.

use super::nodes::{NodeFlags, Nodes, Said, parted};
use crate::shared::Shared;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros::parameter::{Parameter, ParameterValue, SetOutcome};
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
    /// The value in YAML: 0.5, true, text, [1, 2]
    #[arg(allow_hyphen_values = true)]
    value: String,
}

impl Set {
    /// Sets the parameter, of each node.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let value = ParameterValue::from_yaml(&self.value).map_err(|error| anyhow!(error))?;
        let nodes = self.nodes.find(shared, Some(&self.node_name))?;
        let said = nodes.ask(|client, patience| {
            let parameter = Parameter::new(&self.parameter_name, value.clone());
            client.set(vec![parameter], patience)
        });
        let words = ("Set parameter successful", "Setting parameter failed");
        report(shared, &nodes, said, words)
    }
}

/// Says for each node whether its only parameter was set.
pub fn report(
    shared: &Shared,
    nodes: &Nodes,
    said: Vec<Said<Vec<SetOutcome>>>,
    (done, failed): (&str, &str),
) -> Result<()> {
    let (answers, mut failures) = parted(said);
    let mut all = Map::new();
    for (node, outcomes) in answers {
        let outcome = outcomes.into_iter().next().unwrap_or(Ok(()));
        let reason = outcome.as_ref().err().cloned().unwrap_or_default();
        if shared.console.json {
            let row = json!({ "successful": outcome.is_ok(), "reason": reason });
            all.insert(node.clone(), row);
        } else if outcome.is_ok() {
            shared.console.line(match nodes.several {
                true => format!("{node}: {done}"),
                false => done.into(),
            })?;
        }
        if outcome.is_err() {
            failures.push((node, format!("{failed}: {reason}")));
        }
    }
    if shared.console.json {
        shared.console.json(&all.into())?;
    }
    nodes.verdict(shared, failures)
}
