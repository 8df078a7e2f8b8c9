//! The wheel's packages, and pytest on them.
//!
//! The wheel is packed as `cargo xtask wheel --debug` does, and unpacked into a folder of
//! its own. Needs `python3` of version 3.10 or later with pytest, and a built module
//! (`cargo build -p pteros-python`). Without them a test is skipped with a sentence.
#![allow(
    clippy::disallowed_methods,
    reason = "starts python3 with an environment of its own"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of cargo's programs: that of this test's parent.
fn build_folder() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    own.parent()?.parent().map(Path::to_owned)
}

/// Packs the wheel of the built module and unpacks it below a folder of that name.
/// Without the module or pytest, a sentence says that the test is skipped.
pub fn unpacked_packages(name: &str) -> Option<PathBuf> {
    if !has_pytest() {
        println!("skipped: no python3 of version 3.10 or later with pytest");
        return None;
    }
    let Some(folder) = build_folder() else {
        panic!("the test program has no folder");
    };
    let library = folder.join("libpteros_native.so");
    if !library.exists() {
        println!(
            "skipped: {} is not built; cargo build -p pteros-python",
            library.display()
        );
        return None;
    }
    let work = folder.join(name);
    let _ = std::fs::remove_dir_all(&work);
    let packages = work.join("packages");
    let packed = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("wheel.py"))
        .args(["--version", env!("CARGO_PKG_VERSION")])
        .arg("--library")
        .arg(&library)
        .arg("--out")
        .arg(&work)
        .output()
        .expect("run python3");
    assert!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    let wheel = String::from_utf8_lossy(&packed.stdout).trim().to_owned();
    let unpacked = Command::new("python3")
        .args(["-m", "zipfile", "-e", &wheel])
        .arg(&packages)
        .status()
        .expect("run python3");
    assert!(unpacked.success(), "{wheel} cannot be unpacked");
    // As pip does: each of some hundred programs would compile what it imports, which
    // takes as long as the rest of its start.
    let compiled = Command::new("python3")
        .args(["-m", "compileall", "-q"])
        .arg(&packages)
        .status()
        .expect("run python3");
    assert!(compiled.success(), "{wheel} cannot be compiled");
    Some(packages)
}

/// Whether there is a `python3` that can run the suites.
pub fn has_pytest() -> bool {
    let check = "import sys, pytest; sys.exit(sys.version_info < (3, 10))";
    let output = Command::new("python3").args(["-c", check]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The command that runs pytest on these packages.
pub fn pytest(packages: &Path) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Those of a ROS 2 that was sourced fit its own pytest.
        .env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        .env_remove("AMENT_PREFIX_PATH");
    command
}

/// Runs pytest, and panics with what it printed if a test fails.
pub fn must_pass(mut run: Command) {
    let result = run.output().expect("run pytest");
    let output = String::from_utf8_lossy(&result.stdout);
    println!("{output}");
    assert!(
        result.status.success(),
        "{output}\n{}",
        String::from_utf8_lossy(&result.stderr)
    );
}
