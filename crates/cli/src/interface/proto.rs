//! `pteros interface proto`: a message's default values as YAML.

use crate::interface::named::known;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use serde_json::Value;

/// Arguments of `interface proto`.
#[derive(Debug, Args)]
pub struct Proto {
    /// Without the outer quotes
    #[arg(long)]
    no_quotes: bool,
    /// Name of the interface (e.g. example_interfaces/msg/String); of a service
    /// the request is shown, of an action the goal
    #[arg(value_name = "TYPE")]
    type_name: String,
}

impl Proto {
    /// Prints the prototype.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let library = shared.library()?;
        let mut name = known(&library, &self.type_name)?;
        if name.contains("/srv/") {
            name += "_Request";
        } else if name.contains("/action/") {
            name += "_Goal";
        }
        let message_type = DynamicType::new(&library.describe(&name)?)?;
        let message = DynamicMessage::new(&message_type);
        if shared.console.json {
            let value: Value = serde_json::from_str(&message.to_json())?;
            return Ok(shared.console.json(&value)?);
        }
        let yaml = message.to_yaml(&YamlOptions::default());
        shared.console.line(if self.no_quotes {
            yaml
        } else {
            format!("\"{yaml}\"")
        })?;
        Ok(())
    }
}
