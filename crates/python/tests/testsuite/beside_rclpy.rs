//! The same programs on the wheel and on ROS 2's own rclpy.
#![allow(
    clippy::disallowed_methods,
    reason = "starts python3 with an environment of its own"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::wheel::unpacked_packages;

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
