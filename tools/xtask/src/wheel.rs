//! `cargo xtask wheel [--debug | --manylinux [--target MACHINE]] [--zenoh] [--out DIR]`: builds the
//! Python wheel, by default into `target/wheel`.
//!
//! The native module and the command are built with the profile `dist`, for this
//! machine's glibc or newer ones. With `--manylinux` zig links them for glibc 2.28, as
//! `cargo xtask dist` does, for this processor or another one. With `--debug` the module alone is built, with the
//! development profile, for tests. `--zenoh` adds the Zenoh transport. `crates/python/wheel.py` packs them with the Python
//! packages and finds the tag; it needs `python3` and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::package_build::{Glibc, Linker, Options, PackageBuild};
use crate::peers::target_folder;

/// The native module, as cargo names it.
const MODULE: &str = "libpteros_native.so";

#[derive(clap::Args)]
pub struct Arguments {
    /// The module alone, with the development profile, for tests
    #[arg(long, conflicts_with_all = ["target", "profile"])]
    debug: bool,
    /// For glibc 2.28; needs zig
    #[arg(long, conflicts_with = "debug")]
    manylinux: bool,
    #[command(flatten)]
    build: Options,
    /// With the Zenoh transport
    #[arg(long)]
    zenoh: bool,
    /// Where it goes; by default into target/wheel
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command. Returns the line to print: the wheel's path.
pub fn run(arguments: Arguments) -> Result<String> {
    let (linker, options) = match (arguments.debug, arguments.manylinux) {
        (true, _) => (Linker::Host, Options::for_tests()),
        (_, true) => (Linker::Zig, arguments.build),
        _ => (Linker::Host, arguments.build),
    };
    let build = PackageBuild::open(&options, linker)?;
    let (module_features, command_features) = match arguments.zenoh {
        true => ("zenoh", "full,zenoh"),
        false => ("", "full"),
    };
    build.build("pteros-python", module_features)?;
    let out = match arguments.out {
        Some(folder) => folder,
        None => target_folder()?.join("wheel"),
    };
    if arguments.debug {
        return pack_wheel(&mut packer(&build.built(MODULE)?, &out));
    }
    build.build("pteros-cli", command_features)?;
    pack(&build, &out)
}

/// Packs the module and the command that have been built last. Returns the wheel's path.
pub fn pack(build: &PackageBuild, out: &Path) -> Result<String> {
    let mut pack = packer(&build.built(MODULE)?, out);
    pack.arg("--command").arg(build.built("pteros")?);
    if let Some(Glibc(major, minor)) = build.glibc_max() {
        pack.args(["--glibc-max", &format!("{major}.{minor}")]);
    }
    pack_wheel(&mut pack)
}

/// Packs the native module of a folder of built programs, and unpacks the wheel into its
/// folder `python-packages`, with the bytecode that an installation has.
pub fn unpack(built: &Path) -> Result<()> {
    let out = built.join("python-wheel");
    let packages = built.join("python-packages");
    for folder in [&out, &packages] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
        }
    }
    let wheel = pack_wheel(&mut packer(&built.join(MODULE), &out))?;
    // Both as pip does. Without the bytecode, Python could compile the sources at each start.
    for module in [&["zipfile", "-e", &wheel] as &[&str], &["compileall", "-q"]] {
        let mut python = Command::new("python3");
        python.arg("-m").args(module).arg(&packages);
        let status = python.status().context("run python3")?;
        ensure!(status.success(), "{wheel} cannot be unpacked");
    }
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
