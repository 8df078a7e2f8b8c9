//! Builds for an older glibc than this machine's: zig links them (`cargo zigbuild`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::machine::Machine;
use crate::peers::target_folder;

/// A version of glibc.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Glibc(pub u32, pub u32);

/// Oldest glibc that packages run with: Debian 10, RHEL 8.
pub const GLIBC_MIN: Glibc = Glibc(2, 28);
/// What links against an older glibc than the host's.
const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// Makes a `cargo` without arguments a build against [`GLIBC_MIN`]. Installs zig into
/// the build folder, once, which needs a network.
pub fn add_arguments(cargo: &mut Command) -> Result<()> {
    let tools = install_tools()?;
    let path = std::env::var("PATH").unwrap_or_default();
    cargo
        .args(["zigbuild", "--target"])
        .arg(format!(
            "{}.{}.{}",
            Machine::own()?.triple,
            GLIBC_MIN.0,
            GLIBC_MIN.1
        ))
        .env("PATH", format!("{}:{path}", tools.join("bin").display()));
    Ok(())
}

fn install_tools() -> Result<PathBuf> {
    let folder = target_folder()?.join("dist-tools");
    if folder.join("bin/cargo-zigbuild").exists() {
        return Ok(folder);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let pip = folder.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet"]).args(TOOLS))?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("run {program}; is it installed?"))?;
    ensure!(status.success(), "{program} failed ({status})");
    Ok(())
}
