//! `pteros pkg xml`.

use super::manifest::PackageManifest;
use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use pteros_container::ComponentIndex;
use serde_json::json;

/// Arguments of `pkg xml`.
#[derive(Debug, Args)]
pub struct Xml {
    /// Print only the text of this tag, as version; of each if there are several
    #[arg(short = 't', long, value_name = "TAG")]
    tag: Option<String>,
    /// Name of the package
    package_name: String,
}

impl Xml {
    /// Prints the manifest of a package, or the text of a tag.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let packages = packages(&ComponentIndex::from_environment());
        let package = packages
            .find(&self.package_name)
            .map_err(|message| anyhow!(message))?;
        let path = package.share.join("package.xml");
        if !path.is_file() {
            bail!(
                "package '{}' has no manifest {}: a Cargo package needs none; pteros pkg create writes one",
                self.package_name,
                path.display()
            );
        }
        let manifest = PackageManifest::read(&path)?;
        let console = cli.console;
        let Some(tag) = self.tag else {
            if console.json {
                let path = path.to_string_lossy();
                console.json(&json!({ "path": path, "xml": manifest.xml() }))?;
            } else {
                console.line(manifest.xml())?;
            }
            return Ok(());
        };
        let values = manifest.values(&tag);
        if values.is_empty() {
            bail!(
                "{} has no tag '{tag}' below <package>; see all of them with: pteros pkg xml {}",
                path.display(),
                self.package_name
            );
        }
        if console.json {
            return Ok(console.json(&json!(values))?);
        }
        for value in values {
            // Python's word for an element without text.
            console.line(value.unwrap_or("None"))?;
        }
        Ok(())
    }
}
