//! `pteros interface generate`: C structs of interface packages, for programs on
//! `libpteros`.

use crate::cli_context::CliContext;
use crate::suggest::did_you_mean;
use anyhow::{Context, Result, bail};
use clap::Args;
use pteros_typesupport::c_sources;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `interface generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// Write C structs into this folder: a header per interface, and a source file per package
    #[arg(long, value_name = "DIR", required = true)]
    c: PathBuf,
    /// Packages; those that they use are written, too. Default: all that are known
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
}

impl Generate {
    /// Writes the files, and prints the source files that have to be compiled.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let known = library.packages();
        if let Some(package) = (self.packages.iter()).find(|one| !known.contains(&one.as_str())) {
            bail!(
                "unknown package '{package}'{} Known ones: pteros interface packages; {}",
                did_you_mean(package, known),
                crate::cli_context::MORE_INTERFACES
            );
        }
        let packages: Vec<&str> = if self.packages.is_empty() {
            known
        } else {
            self.packages.iter().map(String::as_str).collect()
        };
        let files = c_sources(&library, &packages)?;
        let mut sources = Vec::new();
        for file in &files {
            let path = self.c.join(&file.path);
            let folder = path.parent().unwrap_or(&self.c);
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            std::fs::write(&path, &file.text)
                .with_context(|| format!("cannot write {}", path.display()))?;
            if file.path.ends_with(".c") {
                sources.push(path.display().to_string());
            }
        }
        if cli.console.json {
            return Ok(cli.console.json(&json!({ "sources": sources }))?);
        }
        for source in sources {
            cli.console.row(&source)?;
        }
        Ok(())
    }
}
