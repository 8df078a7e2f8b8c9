//! `pteros pkg executables`.

use crate::launch::packages;
use crate::shared::Shared;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros_component::Index;
use serde_json::{Value, json};

/// Arguments of `pkg executables`.
#[derive(Debug, Args)]
pub struct Executables {
    /// Only those of this package
    package_name: Option<String>,
    /// Print paths
    #[arg(long)]
    full_path: bool,
}

impl Executables {
    /// Prints packages and programs.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let packages = packages(&Index::from_environment());
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
        let console = shared.console;
        if console.json {
            let rows = rows.iter().map(|(package, name, path)| {
                json!({ "package": package, "executable": name, "path": path.to_string_lossy() })
            });
            return Ok(console.json(&Value::from_iter(rows))?);
        }
        for (package, name, path) in rows {
            match self.full_path {
                true => console.line(path.display().to_string())?,
                false => console.line(format!("{package} {name}"))?,
            }
        }
        Ok(())
    }
}
