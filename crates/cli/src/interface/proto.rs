//! `pteros interface proto`: a message's default values as YAML.

use crate::cli_context::CliContext;
use crate::interface::type_names::find_interface;
use anyhow::Result;
use clap::Args;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use serde_json::Value;

/// Arguments of `interface proto`.
#[derive(Debug, Args)]
pub struct Proto {
    /// Print no outer quotes
    #[arg(long)]
    no_quotes: bool,
    /// Name of the interface (e.g. example_interfaces/msg/String); the request of a
    /// service, the goal of an action
    #[arg(value_name = "TYPE")]
    type_name: String,
}

impl Proto {
    /// Prints the prototype.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let name = match find_interface(&library, &self.type_name) {
            Ok(name) if name.contains("/srv/") => name + "_Request",
            Ok(name) if name.contains("/action/") => name + "_Goal",
            Ok(name) => name,
            // A part of a service or an action, as errors name it.
            Err(_) if library.describe(&self.type_name).is_ok() => self.type_name,
            Err(unknown) => return Err(unknown),
        };
        let message_type = DynamicType::new(&library.describe(&name)?)?;
        let message = DynamicMessage::new(&message_type);
        if cli.console.json {
            let value: Value = serde_json::from_str(&message.to_json())?;
            return Ok(cli.console.json(&value)?);
        }
        let yaml = message.to_yaml(&YamlOptions::default());
        cli.console.line(if self.no_quotes {
            yaml
        } else {
            format!("\"{yaml}\"")
        })?;
        Ok(())
    }
}
