//! `cargo xtask c-library PREFIX [--debug]`: builds `libpteros` and installs it: the shared
//! library with versioned symbols, the static library, headers, pkg-config and CMake files.
//!
//! The shared library is linked from the static one, because rustc's own version script
//! leaves no place for another. It needs `cc` and `nm`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::peers::target_folder;

/// Version of the interface, in the name of the library.
const SONAME: &str = "libpteros.so.0";

/// Version node of all symbols (`crates/c/pteros.map`).
const SYMBOL_VERSION: &str = "@@PTEROS_0.1";

#[derive(clap::Args)]
pub struct Arguments {
    /// With the development profile, for tests
    #[arg(long)]
    debug: bool,
    /// Where it goes: PREFIX/lib, PREFIX/include
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
}

/// Runs the command. Returns the line to print.
pub fn run(arguments: &Arguments) -> Result<String> {
    let profile = if arguments.debug { "dev" } else { "dist" };
    // Before the build, which takes minutes.
    let lib = arguments.prefix.join("lib");
    fs::create_dir_all(&lib).with_context(|| {
        let lib = lib.display();
        format!("create {lib}; name a folder of yours, or make it writable first")
    })?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root());
    cargo.args([
        "rustc",
        "--package",
        "pteros-c",
        "--lib",
        "--crate-type",
        "staticlib",
    ]);
    run_command(cargo.args(["--profile", profile]))?;
    let folder = if arguments.debug { "debug" } else { "dist" };
    let archive = target_folder()?.join(folder).join("libpteros_c.a");
    let sources = root().join("crates/c");
    fs::copy(&archive, lib.join("libpteros.a"))
        .with_context(|| format!("copy {}", archive.display()))?;
    link(&archive, &sources, &lib)?;
    check_symbols(&lib.join(SONAME), &sources)?;
    install_files(&sources, &arguments.prefix)?;
    Ok(format!("libpteros is in {}", arguments.prefix.display()))
}

fn link(archive: &Path, sources: &Path, lib: &Path) -> Result<()> {
    let script = sources.join("pteros.map");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-soname"]);
    cc.arg(format!("-Wl,{SONAME}"))
        .arg("-o")
        .arg(lib.join(SONAME));
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive");
    cc.args(["-lgcc_s", "-lrt", "-lpthread", "-lm", "-ldl"]);
    run_command(&mut cc)?;
    let plain = lib.join("libpteros.so");
    if fs::symlink_metadata(&plain).is_ok() {
        fs::remove_file(&plain)?;
    }
    symlink(SONAME, plain).context("link libpteros.so")
}

/// The library exports what `crates/c/abi.txt` lists, and nothing else.
fn check_symbols(library: &Path, sources: &Path) -> Result<()> {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only"])
        .arg(library)
        .output()
        .context("run nm")?;
    ensure!(
        output.status.success(),
        "nm cannot read {}",
        library.display()
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| {
        let name = line.split(' ').nth(2)?;
        // The version node itself is listed, too.
        (!name.starts_with("PTEROS_")).then_some(name)
    });
    let mut exported: Vec<&str> = names.collect();
    exported.sort_unstable();
    let listed = fs::read_to_string(sources.join("abi.txt")).context("read abi.txt")?;
    let listed: Vec<String> = (listed.lines())
        .map(|name| format!("{name}{SYMBOL_VERSION}"))
        .collect();
    if exported != listed {
        bail!(
            "{} exports other symbols than abi.txt: {exported:?}",
            library.display()
        );
    }
    Ok(())
}

fn install_files(sources: &Path, prefix: &Path) -> Result<()> {
    let include = prefix.join("include/pteros");
    fs::create_dir_all(&include)?;
    for header in ["pteros.h", "pteros.hpp", "types.h"] {
        fs::copy(
            sources.join("include/pteros").join(header),
            include.join(header),
        )
        .with_context(|| format!("copy {header}"))?;
    }
    let pkgconfig = prefix.join("lib/pkgconfig");
    fs::create_dir_all(&pkgconfig)?;
    install_template(sources, "pteros.pc", &pkgconfig)?;
    let cmake = prefix.join("lib/cmake/pteros");
    fs::create_dir_all(&cmake)?;
    let config = "pterosConfig.cmake";
    fs::copy(sources.join("install").join(config), cmake.join(config))?;
    install_template(sources, "pterosConfigVersion.cmake", &cmake)
}

/// Writes a file whose template names the version.
fn install_template(sources: &Path, name: &str, folder: &Path) -> Result<()> {
    let template = sources.join("install").join(format!("{name}.in"));
    let text = fs::read_to_string(&template)
        .with_context(|| format!("read {}", template.display()))?
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    fs::write(folder.join(name), text).with_context(|| format!("write {name}"))
}

fn run_command(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("run {:?}", command.get_program()))?;
    ensure!(status.success(), "{:?} failed", command.get_program());
    Ok(())
}
