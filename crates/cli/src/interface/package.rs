//! `pteros interface package`.

use super::kinds::InterfaceKindFlags;
use crate::cli_context::CliContext;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

/// Arguments of `interface package`.
#[derive(Debug, Args)]
pub struct Package {
    #[command(flatten)]
    kinds: InterfaceKindFlags,
    /// Name of the ROS package (e.g. example_interfaces)
    package_name: String,
}

impl Package {
    /// Prints the types of one package, one per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let package = &self.package_name;
        if !library.packages().contains(&package.as_str()) {
            bail!(
                "unknown package '{package}'{} Known ones: pteros interface packages; {}",
                did_you_mean(package, library.packages()),
                crate::cli_context::MORE_INTERFACES
            );
        }
        let mut names = Vec::new();
        for kind in self.kinds.kinds() {
            let prefix = format!("{package}/{kind}/");
            names.extend(library.names().filter(|name| name.starts_with(&prefix)));
        }
        if cli.console.json {
            return Ok(cli.console.json(&json!(names))?);
        }
        for name in names {
            cli.console.row(name)?;
        }
        Ok(())
    }
}
