//! Peer programs for `cargo xtask bench host`, built on demand under
//! `target/interop`. Programs that cannot be built are reported and left out.

use std::path::PathBuf;

use anyhow::Result;
use pteros_testbed::{implementation, programs};

use crate::peers;

/// Builds missing or outdated programs of the `wanted` implementations; all if none
/// is given. Returns the folder of the programs.
pub fn prepare(wanted: &[String]) -> Result<PathBuf> {
    let work = peers::workplace()?;
    let all = implementation::all(&work.programs, &work.programs);
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    // Every run includes the kernel baseline.
    let mut stacks = vec![implementation::FLOOR.to_owned()];
    stacks.extend(
        all.iter()
            .filter(|c| is_wanted(c.name) && c.stack != implementation::ROS1)
            .map(|c| c.stack.to_owned()),
    );
    for program in programs::prepare(&work, &stacks, &|| false) {
        if let Err(why) = program.outcome {
            eprintln!("{} missing: {why:#}", program.name);
        }
    }
    Ok(work.programs)
}
