//! `pteros component types`.

use crate::shared::Shared;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use pteros_component::{Index, Listed, Origin};
use serde_json::{Value, json};

/// Arguments of `component types`.
#[derive(Debug, Args)]
pub struct Types {
    /// Only those of this package
    package_name: Option<String>,
}

impl Types {
    /// Prints packages, and their components indented below.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let mut packages = Index::from_environment().packages();
        if let Some(name) = &self.package_name {
            if !packages.contains_key(name) {
                let similar = did_you_mean(name, packages.keys().map(String::as_str));
                bail!(
                    "package '{name}' has no components{similar} PTEROS_COMPONENT_PATH names folders of component libraries, AMENT_PREFIX_PATH installations"
                );
            }
            packages.retain(|package, _| package == name);
        }
        let console = shared.console;
        if console.json {
            let rows = packages.into_values().flatten().map(|one| row(&one));
            return Ok(console.json(&Value::from_iter(rows))?);
        }
        for (package, components) in packages {
            if self.package_name.is_none() {
                console.line(&package)?;
            }
            let indent = if self.package_name.is_none() {
                "  "
            } else {
                ""
            };
            for one in components {
                let remark = match one.origin {
                    Origin::Pteros => "",
                    Origin::Cpp => "  (C++, for rclcpp's containers)",
                };
                console.line(format!("{indent}{}{remark}", one.class))?;
            }
        }
        Ok(())
    }
}

fn row(one: &Listed) -> Value {
    let language = match one.origin {
        Origin::Pteros => "rust",
        Origin::Cpp => "c++",
    };
    json!({
        "package": one.package,
        "class": one.class,
        "library": one.library.to_string_lossy(),
        "language": language,
    })
}
