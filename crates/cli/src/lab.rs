//! `pteros lab`: starts the lab's own program with the same arguments.
//!
//! The lab is not a part of the command: it would double what the command's build
//! compiles, and few users measure other stacks.

use crate::cli_context::CliContext;
use anyhow::{Context as _, Error, Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The program, beside this command or on PATH.
const PROGRAM: &str = "pteros-lab";

/// Arguments of `lab`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Lab {
    /// Verb and options of the program pteros-lab
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<OsString>,
}

impl Lab {
    /// Replaces this process by the program. Returns only on error.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut command = Command::new(program()?);
        // The name of this command in usage texts.
        command.arg0("pteros lab");
        if cli.console.json {
            command.arg("--json");
        }
        for folder in &cli.interface_folders {
            command.arg("--interfaces").arg(folder);
        }
        let error = command.args(&self.arguments).exec();
        Err(Error::new(error)).with_context(|| format!("start {PROGRAM}"))
    }
}

fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program's own path")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let mut places = std::iter::once(own.with_file_name(PROGRAM)).chain(on_path);
    match places.find(|place| place.is_file()) {
        Some(program) => Ok(program),
        None => bail!(
            "the program {PROGRAM} is neither beside this command nor on PATH; install it with: cargo install --locked --path tools/lab, or run it in the repository: cargo run --release -p pteros-lab -- list"
        ),
    }
}
