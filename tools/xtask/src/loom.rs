//! `cargo xtask loom`: model-checks the lock-free parts of shared memory and the ready
//! flag of executors in every interleaving of two processes or threads
//! (crates/shm/src/loom_tests.rs). It is a release build with its own flag, so the first
//! run builds everything.

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};

use crate::checkout::root;

/// Runs the tests.
pub fn run() -> Result<ExitStatus> {
    Command::new("cargo")
        .current_dir(root())
        .env("RUSTFLAGS", "--cfg loom")
        .args(["test", "--release", "-p", "pteros-shm", "--lib"])
        .status()
        .context("run the tests under loom")
}
