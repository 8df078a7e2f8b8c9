//! rclpy of Pteros's Python wheel as an implementation under test. `cargo xtask bench
//! python` unpacks the wheel into the folder `python-packages` beside this program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use pteros_peers::peer_build::{PeerBuild, run_quietly};
use pteros_peers::ros2::Installation;

use super::Implementation;
use super::implementation::WHEEL;

/// File name of the program.
pub const PROGRAM: &str = "wheel-host";
/// The folder of the unpacked wheel.
const PACKAGES: &str = "python-packages";

fn packages() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program's own path")?;
    Ok(own.with_file_name(PACKAGES))
}

/// Writes the program: the script of rclpy with the Python of ROS 2, so that all start the
/// same one; with that on PATH where no ROS 2 is found.
///
/// # Errors
/// The wheel is not there, Python cannot load it, or the file cannot be written.
pub fn build(work: &PeerBuild) -> Result<PathBuf> {
    let packages = packages()?;
    if !packages.is_dir() {
        bail!(
            "{} is missing; cargo xtask bench python makes it",
            packages.display()
        );
    }
    let installation = Installation::find()?;
    let python = installation.map_or_else(|| "python3".into(), |found| found.python());
    let mut check = Command::new(&python);
    check.args(["-c", "import rclpy, std_msgs"]);
    run_quietly(check.env("PYTHONPATH", &packages))?;
    let script = fs::read_to_string(work.sources.join("host/rclpy/host.py"));
    let text = format!(
        "#!/usr/bin/env -S {}\n{}",
        python,
        script.context("read host.py")?
    );
    let program = work.programs.join(PROGRAM);
    fs::write(&program, text).with_context(|| format!("write {}", program.display()))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, executable).context("make the script executable")?;
    Ok(program)
}

/// Tells the programs over the wheel where its packages are.
///
/// # Errors
/// This program's own path is unknown.
pub fn complete(all: &mut [Implementation]) -> Result<()> {
    let packages = packages()?.to_string_lossy().into_owned();
    for implementation in all.iter_mut().filter(|c| c.stack == WHEEL) {
        implementation
            .environment
            .push(("PYTHONPATH", packages.clone()));
    }
    Ok(())
}
