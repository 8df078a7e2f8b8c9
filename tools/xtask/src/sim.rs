//! `cargo xtask sim`: builds the simulator in release mode and runs it, in the copy of
//! the workspace that has the seeded bugs. The simulator reports invalid options itself
//! (verify/sim/src/main.rs).

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};

use crate::checkout::root;
use crate::seeded_bugs::InstrumentedCopy;

/// Runs the simulator with these options.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    Command::new("cargo")
        .current_dir(root())
        .args(["run", "--release", "--quiet", "-p", "pteros-sim"])
        .args(InstrumentedCopy::make()?.arguments())
        .args(["--features", "faults", "--"])
        .args(arguments)
        .status()
        .context("run the simulator")
}
