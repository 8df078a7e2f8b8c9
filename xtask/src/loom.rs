//! `cargo xtask loom`: the lock-free parts of shared memory in every order in
//! which two processes can run (crates/shm/src/loom_tests.rs). Release, with a
//! flag that no other build has, so it builds anew the first time.

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use crate::tidy::root;

/// Runs the tests.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask loom");
    }
    Command::new("cargo")
        .current_dir(root())
        .env("RUSTFLAGS", "--cfg loom")
        .args(["test", "--release", "-p", "pteros-shm", "--lib"])
        .status()
        .context("run the tests under loom")
}
