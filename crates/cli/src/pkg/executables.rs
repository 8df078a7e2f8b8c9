//! `pteros pkg executables`.

use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Result, anyhow};
use clap::Args;
use pteros_container::ComponentIndex;
use pteros_launch::packages::PackageOrigin;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `pkg executables`.
#[derive(Debug, Args)]
pub struct Executables {
    /// Only the programs of this package
    package_name: Option<String>,
    /// Only the program of this name; the error says why there is none
    executable_name: Option<String>,
    /// Print paths
    #[arg(long)]
    full_path: bool,
}

impl Executables {
    /// Prints packages and programs.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let packages = packages(&ComponentIndex::from_environment());
        let names = match &self.package_name {
            Some(name) => vec![name.clone()],
            None => {
                let built_in = packages.built_in(None).into_iter();
                let mut names = packages.names();
                names.extend(built_in.map(|(package, _)| package.to_owned()));
                names.sort();
                names.dedup();
                names
            }
        };
        let mut rows = Vec::new();
        for package in names {
            let found = match &self.executable_name {
                None => packages.executables(&package),
                Some(name) => packages
                    .executable(&package, name)
                    .map(|path| vec![(name.clone(), path)]),
            };
            let wanted = self.executable_name.as_deref();
            let built_in = packages.built_in(Some(&package)).into_iter();
            let built_in: Vec<(String, PathBuf)> = built_in
                .filter_map(|(_, program)| Some((program.built_in_name()?.to_owned(), program)))
                .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name))
                .map(|(name, program)| (name, program.words().collect::<Vec<_>>().join(" ").into()))
                .collect();
            let found = match found {
                Err(_) if !built_in.is_empty() => Vec::new(),
                found => found.map_err(|message| anyhow!(message))?,
            };
            for (name, path) in found.into_iter().chain(built_in) {
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
        if let Some(found) = self.package_name.and_then(|name| packages.find(&name).ok()) {
            let name = found.name;
            let unbuilt = match found.origin {
                PackageOrigin::Cargo => packages.unbuilt_programs(&name),
                PackageOrigin::Installed => Vec::new(),
            };
            if !unbuilt.is_empty() {
                let programs = unbuilt.join(", ");
                console.note(format!(
                    "not built yet in package '{name}': {programs}; run: cargo build -p {name}"
                ));
            } else if rows.is_empty() {
                console.note(format!("package '{name}' has no programs"));
            }
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
