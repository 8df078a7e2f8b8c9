//! `cargo xtask wheel [--debug] [--out DIR]`: builds the Python wheel, by default into
//! `target/wheel`.
//!
//! The native module and the command are built with the profile `dist`. With `--debug`
//! the module alone is, with the development profile, for tests. `crates/python/wheel.py`
//! packs them with the Python packages; it needs `python3` and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::peers::target_folder;

/// Runs the command. Returns the line to print: the wheel's path.
pub fn run(arguments: &[String]) -> Result<String> {
    let mut is_debug = false;
    let mut out: Option<PathBuf> = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.as_slice().first()) {
            ("--debug", _) => is_debug = true,
            ("--out", Some(folder)) => {
                out = Some(folder.into());
                words.next();
            }
            _ => bail!("usage: cargo xtask wheel [--debug] [--out DIR]"),
        }
    }
    let (profile, folder) = if is_debug {
        ("dev", "debug")
    } else {
        ("dist", "dist")
    };
    build(&["pteros-python"], profile)?;
    let target = target_folder()?;
    let built = target.join(folder);
    let out = out.unwrap_or_else(|| target.join("wheel"));
    let mut pack = packer(&built.join("libpteros_native.so"), &out);
    if !is_debug {
        build(&["pteros-cli", "--features", "full"], profile)?;
        pack.arg("--command").arg(built.join("pteros"));
    }
    pack_wheel(&mut pack)
}

/// Packs the native module of a folder of built programs, and unpacks the wheel into its
/// folder `python-packages`.
pub fn unpack(built: &Path) -> Result<()> {
    let out = built.join("python-wheel");
    let packages = built.join("python-packages");
    for folder in [&out, &packages] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
        }
    }
    let wheel = pack_wheel(&mut packer(&built.join("libpteros_native.so"), &out))?;
    let unpacked = Command::new("python3")
        .args(["-m", "zipfile", "-e", &wheel])
        .arg(&packages)
        .status()
        .context("run python3")?;
    ensure!(unpacked.success(), "{wheel} cannot be unpacked");
    Ok(())
}

fn packer(library: &Path, out: &Path) -> Command {
    let mut pack = Command::new("python3");
    pack.arg(root().join("crates/python/wheel.py"))
        .args(["--version", env!("CARGO_PKG_VERSION")])
        .arg("--library")
        .arg(library)
        .arg("--out")
        .arg(out)
        .stderr(Stdio::inherit());
    pack
}

fn pack_wheel(pack: &mut Command) -> Result<String> {
    let output = pack
        .output()
        .context("run python3, which packs the wheel; install Python 3.10 or later")?;
    if !output.status.success() {
        bail!("crates/python/wheel.py failed");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds a package, whose features may follow its name.
fn build(package: &[&str], profile: &str) -> Result<()> {
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--profile", profile, "-p"])
        .args(package)
        .current_dir(root())
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("{} does not build", package[0]);
    }
    Ok(())
}
