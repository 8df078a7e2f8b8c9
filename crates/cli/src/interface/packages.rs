//! `pteros interface packages`.

use super::kinds::KindFlags;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `interface packages`.
#[derive(Debug, Args)]
pub struct Packages {
    #[command(flatten)]
    kinds: KindFlags,
}

impl Packages {
    /// Prints the packages that hold an interface of a chosen kind.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let library = shared.library()?;
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
        if shared.console.json {
            return Ok(shared.console.json(&json!(packages))?);
        }
        for package in packages {
            shared.console.line(package)?;
        }
        Ok(())
    }
}
