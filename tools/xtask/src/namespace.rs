//! `cargo xtask namespace [--no-multicast] -- COMMAND...`: runs a command in a
//! private network namespace, see `pteros_peers::network`.

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};
pub use pteros_peers::network::{INSIDE_TASK, VARIABLE, available, command, run_inside};

#[derive(clap::Args)]
pub struct Arguments {
    /// Without multicast on loopback
    #[arg(long)]
    no_multicast: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command and returns its status.
pub fn run(arguments: &Arguments) -> Result<ExitStatus> {
    let (program, rest) = arguments.command.split_first().context("no command")?;
    let mut command = command(!arguments.no_multicast, program)?;
    command.args(rest);
    command.status().with_context(|| format!("run {program}"))
}

/// A command in a private network, or in the current one if none is available.
pub fn command_where_available(multicast: bool, program: &str) -> Result<Command> {
    match available() {
        Ok(()) => command(multicast, program),
        Err(_) => Ok(Command::new(program)),
    }
}
