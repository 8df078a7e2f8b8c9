//! Where the container program is. It lies beside the component libraries, for
//! it is of the same build.

use anyhow::{Result, bail};
use pteros_component::{Index, PATH_VARIABLE, PROGRAM};
use std::path::PathBuf;

/// The environment variable that names the program itself.
pub const PROGRAM_VARIABLE: &str = "PTEROS_CONTAINER";

/// The program: as the flag or the environment names it, else in the folders of
/// the index, which end with this command's own, else on PATH.
pub fn container_program(flag: Option<PathBuf>) -> Result<PathBuf> {
    let named = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    if let Some(program) = flag.or(named) {
        match program.is_file() {
            true => return Ok(program),
            false => bail!(
                "container program {} is not there; build it, or name another with --program or {PROGRAM_VARIABLE}",
                program.display()
            ),
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let index = Index::from_environment();
    let folders = index.folders().iter().cloned();
    let mut places = folders.chain(std::env::split_paths(&path));
    match places.find_map(|folder| Some(folder.join(PROGRAM)).filter(|p| p.is_file())) {
        Some(program) => Ok(program),
        None => bail!(
            "no {PROGRAM} in the folders of {PATH_VARIABLE}, beside this command or on PATH; build it with: cargo build -p pteros-components, or name one with --program"
        ),
    }
}
