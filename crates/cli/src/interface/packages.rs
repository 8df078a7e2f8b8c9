//! `pteros interface packages`.

use super::kinds::InterfaceKindFlags;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `interface packages`.
#[derive(Debug, Args)]
pub struct Packages {
    #[command(flatten)]
    kinds: InterfaceKindFlags,
}

impl Packages {
    /// Prints the packages that have an interface of a selected kind.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let infixes: Vec<String> = self
            .kinds
            .kinds()
            .into_iter()
            .map(|kind| format!("/{kind}/"))
            .collect();
        let mut packages: Vec<&str> = library
            .names()
            .filter(|name| infixes.iter().any(|infix| name.contains(infix)))
            .filter_map(|name| name.split('/').next())
            .collect();
        packages.sort_unstable();
        packages.dedup();
        if cli.console.json {
            return Ok(cli.console.json(&json!(packages))?);
        }
        for package in packages {
            cli.console.row(package)?;
        }
        Ok(())
    }
}
