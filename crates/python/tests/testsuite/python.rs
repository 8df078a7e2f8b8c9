//! Runs the Python test suite of the wheel's packages, `crates/python/tests/test_*.py`,
//! against the native module of this build.
//!
//! The wheel is packed as `cargo xtask wheel --debug` does, and unpacked into a folder of
//! its own. Needs `python3` of version 3.10 or later with pytest, and a built module
//! (`cargo build -p pteros-python`). Without them the test is skipped with a sentence.
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

#[test]
fn the_python_suite_passes() {
    let Some(packages) = unpacked_packages("python-suite") else {
        return;
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut on_the_module = pytest(&packages);
    on_the_module.arg(&tests);
    for folder in ["in_memory", "over_zenoh"] {
        on_the_module.arg("--ignore").arg(tests.join(folder));
    }
    must_pass(on_the_module);
}

/// Two programs in Python that share nothing but Zenoh. `cargo xtask test --all` runs it
/// with the feature `zenoh`.
#[cfg(feature = "zenoh")]
#[test]
fn programs_meet_over_zenoh() {
    let Some(packages) = unpacked_packages("python-over-zenoh") else {
        return;
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut over_zenoh = pytest(&packages);
    over_zenoh.arg(tests.join("over_zenoh"));
    must_pass(over_zenoh);
}

/// The programs of `tests/peers` print the same on the wheel as on ROS 2's own rclpy,
/// which `cargo xtask peers` installs from the index; `kilted.py` as on that of Kilted.
#[test]
fn programs_print_the_same_as_on_the_rclpy_of_ros_2() {
    let peers = std::env::var_os("PTEROS_PEERS").map(PathBuf::from);
    let peer = |name| {
        let program = peers.as_ref().map(|folder| folder.join(name));
        program.filter(|program| program.exists())
    };
    let (Some(jazzy), Some(kilted)) = (peer("rclpy-jazzy"), peer("rclpy-kilted")) else {
        println!("skipped: no rclpy-jazzy and rclpy-kilted; cargo xtask peers installs them");
        return;
    };
    // The wheel runs on the same interpreter, whose numpy both use.
    let Some(packages) = unpacked_packages("python-beside-rclpy") else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
    let print = |python: &Path, program: &Path, packages: Option<&Path>| {
        let mut command = Command::new(python);
        command.arg(program).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        command.env(
            "ROS_DOMAIN_ID",
            if packages.is_some() { "91" } else { "92" },
        );
        command.env("PYTHONPATH", packages.unwrap_or(Path::new("")));
        let output = command.output().expect("run the program");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {errors}", program.display());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut count = 0;
    for entry in folder.read_dir().expect("read tests/peers").flatten() {
        let program = entry.path();
        let name = program.file_stem().unwrap_or_default();
        if name == "show" || program.extension().is_none_or(|end| end != "py") {
            continue;
        }
        let python = if name == "kilted" { &kilted } else { &jazzy };
        let expected = print(python, &program, None);
        let printed = print(python, &program, Some(&packages));
        assert!(!expected.is_empty());
        for (number, (line, wanted)) in printed.lines().zip(expected.lines()).enumerate() {
            assert_eq!(line, wanted, "line {} of {}", number + 1, program.display());
        }
        assert_eq!(printed.lines().count(), expected.lines().count());
        count += 1;
    }
    assert!(count >= 8, "only {count} programs");
}

/// Packs the wheel of the built module and unpacks it below a folder of that name.
/// Without the module or pytest, a sentence says that the test is skipped.
fn unpacked_packages(name: &str) -> Option<PathBuf> {
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
    Some(packages)
}

/// The tests of `rclpy` that bring a native module of their own. They need no build.
#[test]
fn the_in_memory_suite_passes() {
    if !has_pytest() {
        println!("skipped: no python3 of version 3.10 or later with pytest");
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut run = pytest(&sources.join("python"));
    run.arg(sources.join("tests/in_memory"));
    must_pass(run);
}

fn has_pytest() -> bool {
    let check = "import sys, pytest; sys.exit(sys.version_info < (3, 10))";
    let output = Command::new("python3").args(["-c", check]).output();
    output.is_ok_and(|output| output.status.success())
}

fn pytest(packages: &Path) -> Command {
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

fn must_pass(mut run: Command) {
    let result = run.output().expect("run pytest");
    let output = String::from_utf8_lossy(&result.stdout);
    println!("{output}");
    assert!(
        result.status.success(),
        "{output}\n{}",
        String::from_utf8_lossy(&result.stderr)
    );
}
