//! `pteros pkg executables`.

use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros_container::ComponentIndex;
use serde_json::{Value, json};

/// Arguments of `pkg executables`.
#[derive(Debug, Args)]
pub struct Executables {
    /// Only the programs of this package
    package_name: Option<String>,
    /// Print paths
    #[arg(long)]
    full_path: bool,
}

impl Executables {
    /// Prints packages and programs.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let packages = packages(&ComponentIndex::from_environment());
        let names = match self.package_name {
            Some(name) => vec![name],
            None => packages.names(),
        };
        let mut rows = Vec::new();
        for package in names {
            let found = packages.executables(&package);
            for (name, path) in found.map_err(|message| anyhow!(message))? {
                rows.push((package.clone(), name, path));
            }
        }
        let console = cli.console;
        if console.json {
            let rows = rows.iter().map(|(package, name, path)| {
                json!({ "package": package, "executable": name, "path": path.to_string_lossy() })
            });
            return Ok(console.json(&Value::from_iter(rows))?);
        }
        for (package, name, path) in rows {
            if self.full_path {
                console.line(path.display().to_string())?
            } else {
                console.line(format!("{package} {name}"))?
            }
        }
        Ok(())
    }
}
