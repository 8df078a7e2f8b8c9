//! Python launch files: the whole launch is handed to the Python package of the wheel.
//!
//! This process is replaced by Python with the module `pteros.launch`. So the signals of
//! the terminal reach the launcher, and its exit code is that of this command.

use crate::python_program;
use anyhow::{Context as _, Result, bail};
use pteros_launch::LaunchRequest;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable with the path of this command, for Python. It finds the programs of
/// Cargo workspaces for it.
const COMMAND_VARIABLE: &str = "PTEROS_COMMAND";
/// Runs the module `pteros.launch` without modules of the current folder.
const START: &str = include_str!("start.py");
/// Lets [`START`] only exit with 0 where the wheel is installed.
const PROBE: &str = "--probe";

/// Replaces this process by Python, which runs, checks or shows the launch file.
/// Returns only on error. Blocks while it looks for a Python, for tens of
/// milliseconds each.
///
/// # Errors
/// No Python has the wheel.
pub fn run(request: &LaunchRequest, flags: &[&str]) -> Result<()> {
    let python = find_python(&request.file)?;
    let mut command = Command::new(&python);
    command.args(["-c", START]).arg(&request.file).args(flags);
    for (name, value) in &request.arguments {
        command.arg(format!("{name}:={value}"));
    }
    if let Some(own) = &request.ros2_command {
        command.env(COMMAND_VARIABLE, own);
    }
    Err(command.exec()).with_context(|| format!("start {}", python.display()))
}

/// The first Python that has the wheel.
fn find_python(file: &Path) -> Result<PathBuf> {
    if let Some(python) = python_program::named() {
        if has_wheel(&python) {
            return Ok(python);
        }
        bail!(
            "{}: {}={} cannot run Python launch files: it cannot be started, or it has no package pteros; install the wheel into it, or name another Python",
            file.display(),
            python_program::VARIABLE,
            python.display()
        );
    }
    let candidates = python_program::candidates();
    if let Some(python) = candidates.iter().find(|python| has_wheel(python)) {
        return Ok(python.clone());
    }
    let list: Vec<String> = candidates.iter().map(|c| c.display().to_string()).collect();
    bail!(
        "{}: the launch has a Python launch file, and no Python with the wheel pteros was found (tried: {}); install the wheel with pip (docs/tutorials/first_node_in_python.md), or name a Python that has it by {}",
        file.display(),
        list.join(", "),
        python_program::VARIABLE
    )
}

fn has_wheel(python: &Path) -> bool {
    let status = Command::new(python)
        .args(["-c", START, PROBE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
