//! `pteros pkg prefix`.

use crate::launch::packages;
use crate::shared::Shared;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros_component::Index;
use pteros_launch::packages::Origin;
use serde_json::json;

/// Arguments of `pkg prefix`.
#[derive(Debug, Args)]
pub struct Prefix {
    /// The package
    package_name: String,
    /// Print where its launch files and the like are
    #[arg(long)]
    share: bool,
}

impl Prefix {
    /// Prints a folder.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let packages = packages(&Index::from_environment());
        let package = packages
            .find(&self.package_name)
            .map_err(|message| anyhow!(message))?;
        let console = shared.console;
        if console.json {
            let origin = match package.origin {
                Origin::Installed => "installed",
                Origin::Cargo => "cargo",
            };
            return Ok(console.json(&json!({
                "package": package.name,
                "prefix": package.prefix.to_string_lossy(),
                "share": package.share.to_string_lossy(),
                "origin": origin,
            }))?);
        }
        let folder = match self.share {
            true => package.share,
            false => package.prefix,
        };
        Ok(console.line(folder.display().to_string())?)
    }
}
