//! In place of the built-in nodes, where they are not built in.

use anyhow::{Result, bail};
use std::ffi::OsString;

/// Whether this build has the built-in nodes.
pub const HAS_NODES: bool = false;

/// Says how to build the node in.
pub fn run(package: &str, executable: &str, _: Vec<OsString>) -> Result<()> {
    bail!("{package}/{executable} is not built in; build with: --features nodes")
}
