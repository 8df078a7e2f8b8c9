//! `pteros pkg prefix`.

use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros_container::ComponentIndex;
use pteros_launch::packages::PackageOrigin;
use serde_json::json;

/// Arguments of `pkg prefix`.
#[derive(Debug, Args)]
pub struct Prefix {
    /// Name of the package
    package_name: String,
    /// Print the folder of its launch files and other shared files
    #[arg(long)]
    share: bool,
}

impl Prefix {
    /// Prints a folder.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let packages = packages(&ComponentIndex::from_environment());
        let package = packages
            .find(&self.package_name)
            .map_err(|message| anyhow!(message))?;
        let console = cli.console;
        if console.json {
            let origin = match package.origin {
                PackageOrigin::Installed => "installed",
                PackageOrigin::Cargo => "cargo",
            };
            return Ok(console.json(&json!({
                "package": package.name,
                "prefix": package.prefix.to_string_lossy(),
                "share": package.share.to_string_lossy(),
                "origin": origin,
            }))?);
        }
        let folder = if self.share {
            package.share
        } else {
            package.prefix
        };
        Ok(console.line(folder.display().to_string())?)
    }
}
