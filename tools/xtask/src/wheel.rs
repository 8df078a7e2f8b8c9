//! `cargo xtask wheel [--debug | --manylinux] [--zenoh] [--out DIR]`: builds the Python wheel, by
//! default into `target/wheel`.
//!
//! The native module and the command are built with the profile `dist`, for this
//! machine's glibc or newer ones. With `--manylinux` zig links them for glibc 2.28, as
//! `cargo xtask dist` does. With `--debug` the module alone is built, with the
//! development profile, for tests. `--zenoh` adds the Zenoh transport. `crates/python/wheel.py` packs them with the Python
//! packages and finds the tag; it needs `python3` and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::machine::Machine;
use crate::peers::target_folder;
use crate::progress;
use crate::zig_build::{self, GLIBC_MIN};

/// How the binaries are built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    Debug,
    Host,
    Manylinux,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The module alone, with the development profile, for tests
    #[arg(long)]
    debug: bool,
    /// For glibc 2.28; needs zig
    #[arg(long, conflicts_with = "debug")]
    manylinux: bool,
    /// With the Zenoh transport
    #[arg(long)]
    zenoh: bool,
    /// Where it goes; by default into target/wheel
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command. Returns the line to print: the wheel's path.
pub fn run(arguments: Arguments) -> Result<String> {
    let build = match (arguments.debug, arguments.manylinux) {
        (true, _) => Build::Debug,
        (_, true) => Build::Manylinux,
        _ => Build::Host,
    };
    let target = target_folder()?;
    let built = match build {
        Build::Debug => target.join("debug"),
        Build::Host => target.join("dist"),
        Build::Manylinux => target.join(Machine::own()?.triple).join("dist"),
    };
    let module_features = if arguments.zenoh { "zenoh" } else { "" };
    let command_features = if arguments.zenoh {
        "full,zenoh"
    } else {
        "full"
    };
    build_package("pteros-python", module_features, build)?;
    let out = arguments.out.unwrap_or_else(|| target.join("wheel"));
    let mut pack = packer(&built.join("libpteros_native.so"), &out);
    if build != Build::Debug {
        build_package("pteros-cli", command_features, build)?;
        pack.arg("--command").arg(built.join("pteros"));
    }
    if build == Build::Manylinux {
        pack.args(["--glibc-max", &format!("{}.{}", GLIBC_MIN.0, GLIBC_MIN.1)]);
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
    let wheel = pack_wheel(&mut packer(&built.join("libpteros_native.so"), &out))?;
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

/// Builds a package with these features.
fn build_package(package: &str, features: &str, build: Build) -> Result<()> {
    let mut cargo = Command::new("cargo");
    if build == Build::Manylinux {
        zig_build::add_arguments(&mut cargo)
            .context("install zig; without `--manylinux` the wheel needs none")?;
    } else {
        cargo.arg("build");
    }
    let profile = match build {
        Build::Debug => "dev",
        Build::Host | Build::Manylinux => "dist",
    };
    cargo
        .args(["--profile", profile, "-p", package])
        .args(["--features", features])
        .current_dir(root());
    let status = progress::run_build(&mut cargo).context("run cargo")?;
    ensure!(status.success(), "{package} does not build");
    Ok(())
}
