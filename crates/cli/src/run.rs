//! `pteros run`.

use crate::built_in_node;
use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Context as _, Error, Result, anyhow};
use clap::Args;
use pteros_container::ComponentIndex;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Command prefix of the program (e.g. 'gdb -ex run --args')
    #[arg(long, value_name = "COMMAND")]
    prefix: Option<String>,
    /// Package of the program: installed, or in the surrounding Cargo workspace
    package_name: String,
    /// Name of the program
    executable_name: String,
    /// Arguments of the program, including --ros-args
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<OsString>,
}

impl Run {
    /// Replaces this process by the program, or runs a built-in node.
    pub fn run(self, _: &CliContext) -> Result<()> {
        let packages = packages(&ComponentIndex::from_environment());
        let program = packages.program(&self.package_name, &self.executable_name);
        let program = program.map_err(|message| anyhow!(message))?;
        let prefix = self.prefix.as_deref().unwrap_or("");
        if !program.arguments.is_empty() && prefix.is_empty() {
            let (package, node) = (&self.package_name, &self.executable_name);
            return built_in_node::run(package, node, self.arguments);
        }
        let mut words: Vec<OsString> = prefix.split_whitespace().map(Into::into).collect();
        words.push(program.path.into());
        words.extend(program.arguments.into_iter().map(Into::into));
        words.extend(self.arguments);
        let error = Command::new(&words[0]).args(&words[1..]).exec();
        Err(Error::new(error)).with_context(|| format!("start {}", words[0].display()))
    }
}
