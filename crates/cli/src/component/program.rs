//! Lookup of the container program. It is searched beside the component libraries,
//! since it must be of the same build.

use anyhow::{Result, bail};
use pteros_container::{ComponentIndex, PATH_VARIABLE, PROGRAM};
use std::path::PathBuf;

/// Environment variable with the path of the container program.
pub const PROGRAM_VARIABLE: &str = "PTEROS_CONTAINER";

/// The program: given by the flag or the environment, else in the folders of the
/// index (the last one is this command's own), else on PATH.
pub fn container_program(flag: Option<PathBuf>) -> Result<PathBuf> {
    let named = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    if let Some(program) = flag.or(named) {
        if program.is_file() {
            return Ok(program);
        } else {
            bail!(
                "container program {} does not exist; build it, or name another with --program or {PROGRAM_VARIABLE}",
                program.display()
            )
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let index = ComponentIndex::from_environment();
    let folders = index.folders().iter().cloned();
    let mut places = folders.chain(std::env::split_paths(&path));
    match places.find_map(|folder| Some(folder.join(PROGRAM)).filter(|p| p.is_file())) {
        Some(program) => Ok(program),
        None => bail!(
            "no {PROGRAM} in the folders of {PATH_VARIABLE}, beside this command or on PATH; build it with: cargo build -p pteros-demo-components, or name one with --program"
        ),
    }
}
