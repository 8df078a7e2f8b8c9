//! Installs the wheel in a root folder that has Python and glibc alone, and runs its
//! programs there: `clean_root/check.py`.
//!
//! Needs a built module (`cargo build -p pteros-python`), `python3` with pip, and a
//! system that allows namespaces. Without them the test is skipped with a sentence. The
//! command is part of the wheel if it is built.
#![allow(
    clippy::disallowed_methods,
    reason = "starts python3 with an environment of its own"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit code of a check that the system does not allow.
const SKIPPED: i32 = 77;

/// The folder of cargo's programs: that of this test's parent.
fn build_folder() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    own.parent()?.parent().map(Path::to_owned)
}

#[test]
fn a_wheel_is_installed_and_runs_without_rust_and_ros() {
    let Some(folder) = build_folder() else {
        panic!("the test program has no folder");
    };
    let (library, command) = (folder.join("libpteros_native.so"), folder.join("pteros"));
    if !library.exists() {
        println!(
            "skipped: {} is not built; cargo build -p pteros-python",
            library.display()
        );
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let work = folder.join("python-clean-root");
    let _ = std::fs::remove_dir_all(&work);
    let mut pack = Command::new("python3");
    pack.arg(sources.join("wheel.py"))
        .args(["--version", env!("CARGO_PKG_VERSION")])
        .arg("--library")
        .arg(&library)
        .arg("--out")
        .arg(&work);
    if command.exists() {
        pack.arg("--command").arg(&command);
    }
    let Ok(packed) = pack.output() else {
        println!("skipped: no python3");
        return;
    };
    assert!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    let wheel = String::from_utf8_lossy(&packed.stdout).trim().to_owned();
    let checked = Command::new("python3")
        .arg("-I")
        .arg(sources.join("tests/clean_root/check.py"))
        .arg(&wheel)
        .output()
        .expect("run python3");
    let output = String::from_utf8_lossy(&checked.stdout);
    println!("{output}");
    if checked.status.code() == Some(SKIPPED) {
        return;
    }
    assert!(
        checked.status.success(),
        "{output}\n{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    assert!(output.contains("uninstalled: nothing is left"), "{output}");
}
