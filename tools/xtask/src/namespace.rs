//! `cargo xtask namespace [--no-multicast] -- COMMAND...`: runs a command in a
//! private network namespace, see `pteros_peers::network`.

use std::process::Command;

use anyhow::Result;
pub use pteros_peers::network::{INSIDE_TASK, VARIABLE, available, command, run, run_inside};

/// A command in a private network, or in the current one if none is available.
pub fn command_where_available(multicast: bool, program: &str) -> Result<Command> {
    match available() {
        Ok(()) => command(multicast, program),
        Err(_) => Ok(Command::new(program)),
    }
}
