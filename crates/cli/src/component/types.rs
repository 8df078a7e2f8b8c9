//! `pteros component types`.

use crate::cli_context::CliContext;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use pteros_container::{ComponentEntry, ComponentIndex, ComponentOrigin};
use serde_json::{Value, json};

/// Arguments of `component types`.
#[derive(Debug, Args)]
pub struct Types {
    /// Only the components of this package
    package_name: Option<String>,
}

impl Types {
    /// Prints packages, each with its components.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut packages = ComponentIndex::from_environment().packages();
        if let Some(name) = &self.package_name {
            if !packages.contains_key(name) {
                let similar = did_you_mean(name, packages.keys().map(String::as_str));
                bail!(
                    "package '{name}' has no components{similar} PTEROS_COMPONENT_PATH names folders of component libraries, AMENT_PREFIX_PATH installations"
                );
            }
            packages.retain(|package, _| package == name);
        }
        let console = cli.console;
        if console.json {
            let rows = packages.into_values().flatten().map(|one| row(&one));
            return Ok(console.json(&Value::from_iter(rows))?);
        }
        for (package, components) in packages {
            if self.package_name.is_none() {
                console.row(&package)?;
            }
            let indent = if self.package_name.is_none() {
                "  "
            } else {
                ""
            };
            for one in components {
                let suffix = match one.origin {
                    ComponentOrigin::Pteros => "",
                    ComponentOrigin::Cpp => "  (C++, for rclcpp's containers)",
                };
                console.row(format!("{indent}{}{suffix}", one.class))?;
            }
        }
        Ok(())
    }
}

fn row(one: &ComponentEntry) -> Value {
    let language = match one.origin {
        ComponentOrigin::Pteros => "rust",
        ComponentOrigin::Cpp => "c++",
    };
    json!({
        "package": one.package,
        "class": one.class,
        "library": one.library.to_string_lossy(),
        "language": language,
    })
}
