//! Runs the Python test suite of the wheel's packages, `crates/python/tests/test_*.py`,
//! against the native module of this build.

use std::path::Path;

use crate::wheel::{has_pytest, must_pass, pytest, unpacked_packages};

#[test]
fn the_python_suite_passes() {
    let Some(packages) = unpacked_packages("python-suite") else {
        return;
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut on_the_module = pytest(&packages);
    on_the_module.arg(&tests);
    // The module `launch` runs these.
    on_the_module
        .arg("--ignore-glob")
        .arg(tests.join("test_launch*.py"));
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
