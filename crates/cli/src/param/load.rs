//! `pteros param load`.

use super::nodes::{NodeFlags, parted};
use crate::shared::Shared;
use anyhow::{Result, bail};
use clap::Args;
use pteros::parameter::ParameterFile;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Arguments of `param load`.
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Leave out what the file has for nodes by `*` and `**`
    #[arg(long)]
    no_use_wildcard: bool,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// The parameter file
    parameter_file: PathBuf,
}

impl Load {
    /// Sets what the file has for each node, one by one.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let file = ParameterFile::read(&self.parameter_file)?;
        let nodes = self.nodes.find(shared, Some(&self.node_name))?;
        let wildcards = !self.no_use_wildcard;
        for node in &nodes.names {
            if !nodes.several && file.parameters_of(node, wildcards).is_empty() {
                bail!(
                    "{} has nothing for node {node}; name it there, or write /**: for every node",
                    self.parameter_file.display()
                );
            }
        }
        let said = nodes.ask(|client, patience| client.load(&file, wildcards, patience));
        let (answers, mut failures) = parted(said);
        let mut all = Map::new();
        for (node, outcomes) in answers {
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
                    Ok(()) if shared.console.json => {}
                    Ok(()) => {
                        let text = format!("{whose}Set parameter {name} successful");
                        shared.console.line(text)?;
                    }
                    Err(reason) => {
                        let text = format!("Set parameter {name} failed: {reason}");
                        failures.push((node.clone(), text));
                    }
                }
            }
            all.insert(node, Value::from(rows));
        }
        if shared.console.json {
            shared.console.json(&all.into())?;
        }
        match failures.len() {
            0 | 1 => nodes.verdict(shared, failures),
            count => {
                for (node, error) in failures {
                    shared.console.remark(format!("{node}: {error}"));
                }
                bail!("{count} parameters were not set")
            }
        }
    }
}
