//! `cargo xtask corpus`: builds the corpus test and runs it. It reports invalid
//! options itself (tools/corpus/src/main.rs).

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};

use crate::checkout::root;

/// Runs the corpus test with these options. Folders are relative to the current one.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    Command::new("cargo")
        .args(["run", "--quiet", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .args(["-p", "pteros-corpus", "--"])
        .args(arguments)
        .status()
        .context("run the corpus test")
}
