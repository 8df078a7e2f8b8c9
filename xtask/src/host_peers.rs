//! The other stacks' programs for `cargo xtask bench host`, built on demand
//! under `target/interop`. What cannot be had is said and left out.

use std::path::PathBuf;

use anyhow::Result;
use pteros_testbed::{contestant, programs};

use crate::peers;

/// Builds what is missing or old of the `wanted` contestants' programs, all when
/// none is named; the folder of the programs.
pub fn prepare(wanted: &[String]) -> Result<PathBuf> {
    let work = peers::workplace()?;
    let all = contestant::all(&work.programs, &work.programs, &[]);
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    // Every run has the bare kernel's rows.
    let mut stacks = vec![contestant::FLOOR.to_owned()];
    stacks.extend(
        all.iter()
            .filter(|c| is_wanted(c.name) && c.stack != contestant::ROS1)
            .map(|c| c.stack.to_owned()),
    );
    for program in programs::prepare(&work, &stacks, &|| false) {
        if let Err(why) = program.outcome {
            eprintln!("{} missing: {why:#}", program.name);
        }
    }
    Ok(work.programs)
}
