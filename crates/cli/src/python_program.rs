//! The Python that runs Python programs and launch files: the one that a variable names,
//! or the first of those where the wheel may be.

use std::path::{Path, PathBuf};

/// The variable with the Python to use. `python3 -m pteros` sets it to its own.
pub const VARIABLE: &str = "PTEROS_PYTHON";

/// The Python that [`VARIABLE`] names.
pub fn named() -> Option<PathBuf> {
    let value = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Where the wheel may be: in the virtual environment, beside this command, in the
/// Python on PATH.
pub fn candidates() -> Vec<PathBuf> {
    let environment = std::env::var_os("VIRTUAL_ENV").filter(|value| !value.is_empty());
    let environment = environment.map(|folder| Path::new(&folder).join("bin/python3"));
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|own| Some(own.parent()?.join("python3")));
    let beside = beside.filter(|python| python.is_file());
    let on_path = PathBuf::from("python3");
    environment
        .into_iter()
        .chain(beside)
        .chain([on_path])
        .collect()
}
