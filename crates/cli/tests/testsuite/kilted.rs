//! Nodes of Kilted's rclpy on the plug-in for Kilted.
//!
//! PTEROS_ROS2_KILTED names a virtual environment of Python with the packages
//! `ros-kilted-rclpy`, `ros-kilted-rmw-fastrtps-cpp`, `ros-kilted-std-msgs` and
//! `ros-kilted-test-msgs`; `cargo xtask test --all` makes one. Their rcl is linked with Fast
//! DDS, so the plug-in is loaded before it (LD_PRELOAD).

#![allow(
    clippy::disallowed_methods,
    reason = "the environment names the installation"
)]

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::{Program, plug_in_folder, secured};
use crate::support::{self, Domain, assert_contains};
use std::path::{Path, PathBuf};
use std::process::Command;

const FAST_DDS: &str = "rmw_fastrtps_cpp";

/// The lines of a node that asks.
const ANSWERS: [&str; 6] = [
    "topic: from the server",
    "service: 42 there and back",
    "parameter: 42",
    "action: [0, 1, 2, 3, 4]",
    "info: 1 server std_msgs/msg/String",
    "all answered",
];

struct Kilted {
    python: PathBuf,
    plug_in: PathBuf,
}

impl Kilted {
    fn find() -> Option<Self> {
        let prefix = std::env::var_os("PTEROS_ROS2_KILTED");
        let python = prefix.map(|prefix| Path::new(&prefix).join("bin/python"));
        let python = python.filter(|python| python.exists());
        let plug_in = plug_in_folder("librmw_pteros_cpp_kilted.so");
        let Some((python, plug_in)) = python.zip(plug_in) else {
            println!(
                "skipped: PTEROS_ROS2_KILTED names no environment with Python, or no plug-in is built"
            );
            return None;
        };
        let plug_in = plug_in.join("librmw_pteros_cpp.so");
        Some(Self { python, plug_in })
    }

    fn start(&self, domain: &Domain, rmw: &str, role: &str) -> Program {
        self.start_with(domain, rmw, role, &[])
    }

    fn start_with(
        &self,
        domain: &Domain,
        rmw: &str,
        role: &str,
        variables: &[(&str, String)],
    ) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2_node.py");
        let mut command = Command::new("bash");
        command
            .args(["-c", "exec \"$@\" 2>&1", "bash"])
            .arg(&self.python)
            .arg(script)
            .arg(role)
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env("RMW_IMPLEMENTATION", rmw)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        if rmw == PLUG_IN {
            command.env("LD_PRELOAD", &self.plug_in);
        }
        Program::start(&mut command)
    }
}

/// A topic, a service, a parameter, an action and the graph, on the plug-in and beside
/// Fast DDS, either way.
#[test]
fn nodes_of_kilted_serve_and_ask_on_the_plug_in_and_beside_fast_dds() {
    let Some(kilted) = Kilted::find() else { return };
    let domain = Domain::new();
    for (server, asker) in [(PLUG_IN, PLUG_IN), (PLUG_IN, FAST_DDS), (FAST_DDS, PLUG_IN)] {
        let mut serving = kilted.start(&domain, server, "serve");
        serving.expect("serving");
        let mut asking = kilted.start(&domain, asker, "ask");
        for line in ANSWERS {
            asking.expect(line);
        }
        // Nothing is reported at the end of either.
        asking.finish();
        let text = serving.interrupt();
        assert!(!text.contains("Error"), "{text}");
    }
}

/// Nodes in enclaves meet, and a native one. Fast DDS of these packages has no security.
#[test]
fn secured_nodes_of_kilted_meet_on_the_plug_in() {
    let Some(kilted) = Kilted::find() else { return };
    let domain = Domain::new();
    let keystore = kilted.plug_in.with_file_name("keystore_of_kilted");
    let words = format!("security init {} -e /one /other", keystore.display());
    let made = support::finish(domain.command(words.split(' ')));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let start =
        |role, enclave| kilted.start_with(&domain, PLUG_IN, role, &secured(&keystore, enclave));
    let mut serving = start("serve", "/one");
    serving.expect("serving");
    let mut asking = start("ask", "/other");
    for line in ANSWERS {
        asking.expect(line);
    }
    asking.finish();
    let mut command = domain.command("topic echo /words --once".split(' '));
    command.envs(secured(&keystore, "/other"));
    let heard = support::finish(command);
    assert_contains(&heard.out, "from the server");
    // rcl refuses an enclave that the keystore has not.
    assert!(!start("serve", "/absent").expect_or_end("serving"));
    serving.interrupt();
}

/// The same over Zenoh alone, and a native node, without a router.
#[cfg(feature = "zenoh")]
#[test]
fn nodes_of_kilted_meet_over_zenoh() {
    let Some(kilted) = Kilted::find() else { return };
    let domain = Domain::new();
    let wire = [
        ("PTEROS_WIRE", "zenoh".to_owned()),
        ("PTEROS_SHARED_MEMORY", "off".to_owned()),
    ];
    let mut serving = kilted.start_with(&domain, PLUG_IN, "serve", &wire);
    if !serving.expect_or_end("serving") {
        assert_contains(&serving.seen, "Zenoh, which is not in this rmw_pteros_cpp");
        println!("skipped: the plug-in is built without Zenoh");
        return;
    }
    let mut asking = kilted.start_with(&domain, PLUG_IN, "ask", &wire);
    for line in ANSWERS {
        asking.expect(line);
    }
    asking.finish();
    let mut command = domain.command("topic echo /words --once".split(' '));
    command.envs(wire);
    assert_contains(&support::finish(command).out, "from the server");
    serving.interrupt();
}
