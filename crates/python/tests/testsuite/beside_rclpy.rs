//! Programs on the wheel and on ROS 2's own rclpy: the same ones on both, and nodes that
//! talk to each other.
#![allow(
    clippy::disallowed_methods,
    reason = "starts python3 with an environment of its own"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::wheel::unpacked_packages;

/// The programs of `tests/peers` print the same on the wheel as on ROS 2's own rclpy,
/// which `cargo xtask peers` installs from the index; `kilted.py` as on that of Kilted.
#[test]
fn programs_print_the_same_as_on_the_rclpy_of_ros_2() {
    let Some([jazzy, kilted]) = rclpy_of_ros_2() else {
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

/// Both of Jazzy and Kilted, over Fast DDS; a sentence if they are not there.
fn rclpy_of_ros_2() -> Option<[PathBuf; 2]> {
    let peers = std::env::var_os("PTEROS_PEERS").map(PathBuf::from);
    let found = peers.map(|folder| ["rclpy-jazzy", "rclpy-kilted"].map(|name| folder.join(name)));
    let found = found.filter(|found| found.iter().all(|program| program.exists()));
    if found.is_none() {
        println!("skipped: no rclpy-jazzy and rclpy-kilted; cargo xtask peers installs them");
    }
    found
}

/// A node in a process of its own, ended with this value.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node on the wheel and one on ROS 2's rclpy over Fast DDS, either way: topics to 8 MB,
/// latched ones, a service, a parameter, an action, a managed node, a type description.
#[test]
fn nodes_of_the_wheel_and_of_the_rclpy_of_ros_2_serve_and_ask_each_other() {
    let Some(distributions) = rclpy_of_ros_2() else {
        return;
    };
    let Some(packages) = unpacked_packages("python-meets-rclpy") else {
        return;
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/ros2_node.py");
    let start = |python: &Path, role: &str, packages: &Path| {
        let mut command = Command::new(python);
        command.arg(&program).arg(role).stdout(Stdio::piped());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONPATH", packages);
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        command.env("ROS_DOMAIN_ID", "93");
        Node(command.spawn().expect("start the node"))
    };
    let none = Path::new("");
    for python in &distributions {
        for (server, asker) in [(packages.as_path(), none), (none, packages.as_path())] {
            let mut serving = start(python, "serve", server);
            let out = serving.0.stdout.take().expect("its output");
            let first = BufReader::new(out).lines().next();
            assert_eq!(first.and_then(Result::ok).as_deref(), Some("serving"));
            let mut asking = start(python, "ask", asker);
            let out = asking.0.stdout.take().expect("its output");
            let lines: Vec<String> = BufReader::new(out).lines().map_while(Result::ok).collect();
            let ended = asking.0.wait().expect("wait for the node");
            assert!(ended.success(), "{}: {lines:?}", python.display());
            assert_eq!(lines.last().map(String::as_str), Some("all answered"));
            let latched = "latched: [0, 1, 1000, 100000, 8000000] True";
            assert!(lines.iter().any(|line| line == latched), "{lines:?}");
            assert_eq!(lines.len(), 9, "{lines:?}");
        }
    }
}
